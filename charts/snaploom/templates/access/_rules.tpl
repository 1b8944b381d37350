{{/*
Permissions of the operator in watched namespaces: what its code does, verb by verb. The comment above
a rule is its reason; the page of permissions is generated from these comments.
*/}}
{{- define "snaploom.operator.rules" -}}
# It reads and watches every declaration. It patches the finalizer of what has
# `deletionPolicy: Delete`, and nothing else: it never writes a `spec`.
- apiGroups: ["snaploom.io"]
  resources:
    {{- include "snaploom.kinds" . | nindent 4 }}
  verbs: ["get", "list", "watch", "patch"]
# It writes conditions, runs and snapshots into the status.
- apiGroups: ["snaploom.io"]
  resources:
    {{- range include "snaploom.kinds" . | fromYamlArray }}
    - {{ . }}/status
    {{- end }}
  verbs: ["patch"]
{{- if has "SparkOperator" .Values.operator.submitters }}
# With the submitter `SparkOperator`: a run is one application, which it creates, follows, and
# deletes to stop the run or when `historyLimit` is reached. It never changes one.
- apiGroups: ["sparkoperator.k8s.io"]
  resources: ["sparkapplications"]
  verbs: ["get", "list", "watch", "create", "delete"]
{{- end }}
{{- if has "ApacheSpark" .Values.operator.submitters }}
# With the submitter `ApacheSpark`: the same, for Apache's operator.
- apiGroups: ["spark.apache.org"]
  resources: ["sparkapplications"]
  verbs: ["get", "list", "watch", "create", "delete"]
{{- end }}
{{- if hasPrefix "Kueue" (.Values.operator.queueScheduler | default "") }}
# With queues of Kueue: it reads why a queue has not admitted a run. It changes no queue.
- apiGroups: ["kueue.x-k8s.io"]
  resources: ["workloads"]
  verbs: ["list", "watch"]
{{- end }}
# It creates a ConfigMap with the declarations of each run, and one with the plan of a large output,
# which it patches; it reads the reports of jobs, and deletes all of these with the run.
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["get", "list", "watch", "create", "patch", "delete"]
# It reports what a driver's pod waits for: an image, a quota, a Secret, a node.
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["list", "watch"]
# It posts events about runs and stalled resources, and counts repeated ones in the same event.
- apiGroups: ["events.k8s.io"]
  resources: ["events"]
  verbs: ["get", "create", "patch"]
{{- end -}}

{{/* Rights of the operator on what is in no namespace. */}}
{{- define "snaploom.operator.clusterRules" -}}
{{- if not .Values.watchNamespaces }}
# Without `watchNamespaces`: it learns that a namespace is going, where nothing can be created.
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["list", "watch"]
{{- end }}
{{- if include "snaploom.rotates" . }}
# With admission and without cert-manager: it puts the authority of the webhook's certificate where
# the API server looks for it, in this one object.
- apiGroups: ["admissionregistration.k8s.io"]
  resources: ["validatingwebhookconfigurations"]
  resourceNames: [{{ include "snaploom.fullname" . | quote }}]
  verbs: ["get", "patch"]
{{- end }}
{{- end -}}

{{/* Rights of the operator in its own namespace. */}}
{{- define "snaploom.operator.ownRules" -}}
# It creates the Lease by which one operator at a time works; RBAC cannot bind `create` to a name.
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  verbs: ["create"]
# It renews this Lease, and gives it up.
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  resourceNames: [{{ include "snaploom.operator.lease" . | quote }}]
  verbs: ["get", "patch"]
{{- if include "snaploom.rotates" . }}
# With admission and without cert-manager: it issues the webhook's certificate into this one Secret,
# and renews it. It may read no other Secret.
- apiGroups: [""]
  resources: ["secrets"]
  resourceNames: [{{ include "snaploom.webhook.secret" . | quote }}]
  verbs: ["get", "patch"]
{{- end }}
{{- end -}}

{{/* Permissions of the webhook: it reads our kinds, and changes nothing. */}}
{{- define "snaploom.webhook.rules" -}}
# It judges a declaration by what else is declared, and asks nothing while it judges.
- apiGroups: ["snaploom.io"]
  resources:
    {{- include "snaploom.kinds" . | nindent 4 }}
  verbs: ["list", "watch"]
{{- end -}}

{{/* Permissions of the pages in watched namespaces: they show what the operator wrote. */}}
{{- define "snaploom.pages.rules" -}}
# It shows outputs with their sources and indexes, to users who may list all three in a namespace.
- apiGroups: ["snaploom.io"]
  resources: ["outputdatasets", "datasources", "skippingindexes"]
  verbs: ["list", "watch"]
{{- end -}}

{{/* Rights of the pages on what is in no namespace: questions, which store nothing. */}}
{{- define "snaploom.pages.clusterRules" -}}
# It asks the API server whose a token is, which came with a request.
- apiGroups: ["authentication.k8s.io"]
  resources: ["tokenreviews"]
  verbs: ["create"]
# It asks the API server what this user may list, and in which namespaces.
- apiGroups: ["authorization.k8s.io"]
  resources: ["subjectaccessreviews"]
  verbs: ["create"]
{{- end -}}

{{/*
Rights of a Spark driver: what Spark does to its executors, their settings and their disks, and our
job's own report and its lease. Spark deletes by label, in one request.
*/}}
{{- define "snaploom.spark.rules" -}}
# Spark's driver creates its executors, watches them, labels them, and deletes them, also by label.
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["get", "list", "watch", "create", "patch", "delete", "deletecollection"]
# Our job writes its report, where without it the status learns little; Spark creates the settings
# of its executors, and deletes them by label when it ends.
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["get", "create", "update", "deletecollection"]
# Spark deletes the driver's Service by label when it ends.
- apiGroups: [""]
  resources: ["services"]
  verbs: ["deletecollection"]
# Spark creates the claims of executors that have disks of their own, finds those that can be used
# again, and deletes them by label when it ends.
- apiGroups: [""]
  resources: ["persistentvolumeclaims"]
  verbs: ["list", "create", "deletecollection"]
# Our job holds a Lease while it publishes, so that one run at a time works on a folder; its name is
# a hash of the folder, which no rule can list.
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
