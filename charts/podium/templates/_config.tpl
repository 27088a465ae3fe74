{{- define "podium.schedulerName" -}}
{{- default (include "podium.fullname" .) .Values.schedulerName -}}
{{- end -}}

{{/* The names in a list of plugins, which may hold names or {name, weight}. */}}
{{- define "podium.pluginList" -}}
{{- range . }}
{{- if kindIs "string" . }}
- name: {{ . | quote }}
{{- else }}
- {{ toYaml . | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "podium.profile" -}}
schedulerName: {{ include "podium.schedulerName" . | quote }}
{{- if or .Values.plugins.enabled .Values.plugins.disabled }}
plugins:
  multiPoint:
    {{- with .Values.plugins.enabled }}
    enabled: {{- include "podium.pluginList" . | nindent 6 }}
    {{- end }}
    {{- with .Values.plugins.disabled }}
    disabled: {{- include "podium.pluginList" . | nindent 6 }}
    {{- end }}
{{- end }}
{{- with .Values.pluginConfig }}
pluginConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The completed KubeSchedulerConfiguration; everything that depends on it reads it here. */}}
{{- define "podium.config" -}}
{{- $election := dict "leaderElect" .Values.leaderElection.enabled -}}
{{- $_ := set $election "leaseDuration" .Values.leaderElection.leaseDuration -}}
{{- $_ := set $election "renewDeadline" .Values.leaderElection.renewDeadline -}}
{{- $_ := set $election "retryPeriod" .Values.leaderElection.retryPeriod -}}
{{- $_ := set $election "resourceName" (include "podium.schedulerName" .) -}}
{{- $_ := set $election "resourceNamespace" (default (include "podium.namespace" .) .Values.leaderElection.resourceNamespace) -}}
{{- $config := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" -}}
{{- $_ := set $config "leaderElection" $election -}}
{{- $_ := set $config "profiles" (list (include "podium.profile" . | fromYaml)) -}}
{{- mergeOverwrite $config (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{- define "podium.options" -}}
{{- $options := dict "apiVersion" "podium.dev/v1alpha1" "kind" "SchedulerOptions" -}}
{{- if .Values.liveProfiles.enabled }}{{ $_ := set $options "liveProfiles" (dict "enabled" true) }}{{ end -}}
{{- mergeOverwrite $options (deepCopy .Values.options) | toYaml -}}
{{- end -}}

{{- define "podium.hasOptions" -}}
{{- if or .Values.options .Values.liveProfiles.enabled }}true{{ end -}}
{{- end -}}

{{/* Whether SchedulerProfile objects are followed in the end, whichever value says so. */}}
{{- define "podium.hasLiveProfiles" -}}
{{- if dig "liveProfiles" "enabled" false (include "podium.options" . | fromYaml) }}true{{ end -}}
{{- end -}}

{{/* Combinations that would do harm. Each sentence says what to change. */}}
{{- define "podium.validate" -}}
{{- $config := include "podium.config" . | fromYaml -}}
{{- $names := list -}}
{{- range $config.profiles -}}{{- $names = append $names (default "default-scheduler" .schedulerName) -}}{{- end -}}
{{- if and (gt (int .Values.replicaCount) 1) (not $config.leaderElection.leaderElect) -}}
{{- fail (printf "replicaCount is %d without leader election: every replica would schedule every pod. Set leaderElection.enabled to true, or replicaCount to 1." (int .Values.replicaCount)) -}}
{{- end -}}
{{- if and (has "default-scheduler" $names) (not .Values.acknowledgeReplacingDefault) -}}
{{- fail "a profile is named default-scheduler: Podium and kube-scheduler would both schedule all pods. Choose another schedulerName, or stop kube-scheduler from serving that name and set acknowledgeReplacingDefault to true." -}}
{{- end -}}
{{- $own := default "default-scheduler" .Values.podSchedulerName -}}
{{- if has $own $names -}}
{{- fail (printf "Podium's own pods would wait for Podium: they are to be scheduled by %q, which is one of its profiles. Set podSchedulerName to another scheduler that runs in this cluster." $own) -}}
{{- end -}}
{{- if and .Values.config.profiles (or .Values.plugins.enabled .Values.plugins.disabled .Values.pluginConfig) -}}
{{- fail "plugins and pluginConfig belong to the chart's own profile, and config.profiles replaces it: move them into config.profiles." -}}
{{- end -}}
{{- if and .Values.config.profiles .Values.schedulerName (not (has .Values.schedulerName $names)) -}}
{{- fail (printf "schedulerName is %q, but no profile in config.profiles has that name: pods that name it would wait for ever." .Values.schedulerName) -}}
{{- end -}}
{{- if and (eq .Values.tls.mode "secret") (not .Values.tls.secretName) -}}
{{- fail "tls.mode is secret, but tls.secretName is empty: name a Secret of type kubernetes.io/tls." -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.service.enabled) -}}
{{- fail "serviceMonitor.enabled needs the Service: set service.enabled to true, or use podMonitor." -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled (not .Values.podMonitor.authorization) -}}
{{- fail "podMonitor.enabled needs podMonitor.authorization: Podium shows metrics to those who may read /metrics only, and a PodMonitor cannot use Prometheus' own token." -}}
{{- end -}}
{{- end -}}
