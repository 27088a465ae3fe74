{{/* What the daemon asks of the API server, and nothing else. An informer lists and watches; it never gets. */}}
{{- define "podium.rules" -}}
# Watching what decisions depend on.
- apiGroups: [""]
  resources: [nodes, pods, namespaces, services, replicationcontrollers, persistentvolumes, persistentvolumeclaims]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses, csinodes, csidrivers, csistoragecapacities, volumeattachments]
  verbs: [list, watch]
# Carrying decisions out, and reading back a pod whose binding had no answer.
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
# Telling what happened.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# Asking the API server who a scraper is and what it may see.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- if .Values.rbac.preemption }}
# Preemption: removing the pods that make room.
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
{{- end }}
{{- if .Values.rbac.volumeBinding }}
# Binding volumes.
- apiGroups: [""]
  resources: [persistentvolumes, persistentvolumeclaims]
  verbs: [patch]
{{- end }}
{{- if or .Values.rbac.dynamicResources (include "podium.hasLiveProfiles" .) }}
# Claims and devices, for plugins that look at them; a live profile may bring one at any time.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims, resourceslices, deviceclasses]
  verbs: [list, watch]
{{- end }}
{{- if include "podium.hasLiveProfiles" . }}
# Live profiles: following the objects, and saying in their status what became of them.
- apiGroups: [scheduling.podium.dev]
  resources: [schedulerprofiles]
  verbs: [list, watch]
- apiGroups: [scheduling.podium.dev]
  resources: [schedulerprofiles/status]
  verbs: [patch]
{{- end }}
{{- with .Values.rbac.extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}
