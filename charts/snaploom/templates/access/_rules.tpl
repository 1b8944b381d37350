{{/* Rights of the operator wherever it looks after resources: what its code does, verb by verb. */}}
{{- define "snaploom.operator.rules" -}}
- apiGroups: ["snaploom.io"]
  resources:
    {{- include "snaploom.kinds" . | nindent 4 }}
  verbs: ["get", "list", "watch", "patch"]
- apiGroups: ["snaploom.io"]
  resources:
    {{- range include "snaploom.kinds" . | fromYamlArray }}
    - {{ . }}/status
    {{- end }}
  verbs: ["patch"]
{{- if has "SparkOperator" .Values.operator.submitters }}
- apiGroups: ["sparkoperator.k8s.io"]
  resources: ["sparkapplications"]
  verbs: ["get", "list", "watch", "create", "delete"]
{{- end }}
{{- if has "ApacheSpark" .Values.operator.submitters }}
- apiGroups: ["spark.apache.org"]
  resources: ["sparkapplications"]
  verbs: ["get", "list", "watch", "create", "delete"]
{{- end }}
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["get", "list", "watch", "create", "patch", "delete"]
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["list", "watch"]
- apiGroups: ["events.k8s.io"]
  resources: ["events"]
  verbs: ["get", "create", "patch"]
{{- end -}}

{{/* Rights of the operator on what is in no namespace. */}}
{{- define "snaploom.operator.clusterRules" -}}
{{- if not .Values.watchNamespaces }}
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["list", "watch"]
{{- end }}
{{- if include "snaploom.rotates" . }}
- apiGroups: ["admissionregistration.k8s.io"]
  resources: ["validatingwebhookconfigurations"]
  resourceNames: [{{ include "snaploom.fullname" . | quote }}]
  verbs: ["get", "patch"]
{{- end }}
{{- end -}}

{{/* Rights of the operator in its own namespace. */}}
{{- define "snaploom.operator.ownRules" -}}
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  verbs: ["create"]
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  resourceNames: [{{ include "snaploom.operator.lease" . | quote }}]
  verbs: ["get", "patch"]
{{- if include "snaploom.rotates" . }}
- apiGroups: [""]
  resources: ["secrets"]
  resourceNames: [{{ include "snaploom.webhook.secret" . | quote }}]
  verbs: ["get", "patch"]
{{- end }}
{{- end -}}

{{/* Rights of the webhook: it looks at our kinds, and changes nothing. */}}
{{- define "snaploom.webhook.rules" -}}
- apiGroups: ["snaploom.io"]
  resources:
    {{- include "snaploom.kinds" . | nindent 4 }}
  verbs: ["list", "watch"]
{{- end -}}

{{/*
Rights of a Spark driver: what Spark does to its executors, their settings and their disks, and our
job's own report and its lease. Spark deletes by label, in one request.
*/}}
{{- define "snaploom.spark.rules" -}}
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["get", "list", "watch", "create", "patch", "delete", "deletecollection"]
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["get", "create", "update", "deletecollection"]
- apiGroups: [""]
  resources: ["services"]
  verbs: ["deletecollection"]
- apiGroups: [""]
  resources: ["persistentvolumeclaims"]
  verbs: ["list", "create", "deletecollection"]
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  verbs: ["get", "create", "update"]
{{- end -}}

{{/*
A role and who has it. Takes a dict: root, rules (text), name, account, component, and namespace; an
empty namespace is for the whole cluster.
*/}}
{{- define "snaploom.granted" -}}
{{- $kind := .namespace | empty | ternary "ClusterRole" "Role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "snaploom.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "snaploom.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .accountNamespace | default .root.Release.Namespace }}
{{- end -}}
