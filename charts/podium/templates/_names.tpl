{{- define "podium.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Cluster-scoped objects carry it too: a second release of the same name in another namespace is refused by Helm,
     as it should be: both would answer to the same schedulerName. */}}
{{- define "podium.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "podium.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "podium.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "podium.selectorLabels" -}}
app.kubernetes.io/name: {{ include "podium.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "podium.labels" -}}
{{ include "podium.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/part-of: podium
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* metadata of a namespaced object: dict "root" $ "suffix" "-config" "labels" {} "annotations" {} */}}
{{- define "podium.metadata" -}}
name: {{ print (include "podium.fullname" .root) .suffix | quote }}
namespace: {{ default (include "podium.namespace" .root) .namespace | quote }}
{{ include "podium.clusterMetadataRest" . }}
{{- end -}}

{{- define "podium.clusterMetadata" -}}
name: {{ print (include "podium.fullname" .root) .suffix | quote }}
{{ include "podium.clusterMetadataRest" . }}
{{- end -}}

{{- define "podium.clusterMetadataRest" -}}
labels:
  {{- include "podium.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with mergeOverwrite (dict) .root.Values.commonAnnotations (default (dict) .annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "podium.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "podium.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "podium.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository }}:{{ default .Chart.AppVersion $image.tag -}}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- define "podium.tlsSecretName" -}}
{{- if eq .Values.tls.mode "secret" -}}
{{- .Values.tls.secretName -}}
{{- else if eq .Values.tls.mode "certManager" -}}
{{- include "podium.fullname" . }}-serving-tls
{{- end -}}
{{- end -}}
