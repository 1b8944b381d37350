{{/* Name of the application in labels. */}}
{{- define "snaploom.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* What names of objects begin with; short enough for what follows it. */}}
{{- define "snaploom.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "snaploom.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "snaploom.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels by which pods are found; they never change. */}}
{{- define "snaploom.selector" -}}
app.kubernetes.io/name: {{ include "snaploom.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "snaploom.labels" -}}
{{- $ours := dict
  "app.kubernetes.io/name" (include "snaploom.name" .)
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/part-of" "snaploom"
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") -}}
{{- toYaml (merge $ours .Values.commonLabels) -}}
{{- end -}}

{{/* Labels of an object that has more of them, which count. Takes a list: the root, its labels. */}}
{{- define "snaploom.labelsWith" -}}
{{- toYaml (merge (deepCopy (index . 1)) (include "snaploom.labels" (index . 0) | fromYaml)) -}}
{{- end -}}

{{/* Names of objects that others mention. */}}
{{- define "snaploom.operator.account" -}}
{{- default (printf "%s-operator" (include "snaploom.fullname" .)) .Values.operator.serviceAccount.name -}}
{{- end -}}
{{- define "snaploom.operator.lease" -}}
{{- printf "%s-operator" (include "snaploom.fullname" .) -}}
{{- end -}}
{{- define "snaploom.webhook.account" -}}
{{- default (printf "%s-webhook" (include "snaploom.fullname" .)) .Values.admission.serviceAccount.name -}}
{{- end -}}
{{- define "snaploom.webhook.name" -}}
{{- printf "%s-webhook" (include "snaploom.fullname" .) -}}
{{- end -}}
{{- define "snaploom.webhook.secret" -}}
{{- printf "%s-webhook-certificate" (include "snaploom.fullname" .) -}}
{{- end -}}
{{- define "snaploom.webhook.issuer" -}}
{{- default (include "snaploom.webhook.name" .) .Values.admission.certManager.issuer.name -}}
{{- end -}}
{{- define "snaploom.pages.account" -}}
{{- default (printf "%s-pages" (include "snaploom.fullname" .)) .Values.pages.serviceAccount.name -}}
{{- end -}}
{{- define "snaploom.pages.name" -}}
{{- printf "%s-pages" (include "snaploom.fullname" .) -}}
{{- end -}}
{{- define "snaploom.spark.account" -}}
{{- default "snaploom-spark" .Values.spark.serviceAccount.name -}}
{{- end -}}

{{/* Whether the operator itself issues the webhook's certificate: "true" or nothing. */}}
{{- define "snaploom.rotates" -}}
{{- if and .Values.admission.enabled (not .Values.admission.certManager.enabled) -}}true{{- end -}}
{{- end -}}

{{/* Reference of an image. Takes a list: the root, the image of the values. */}}
{{- define "snaploom.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Namespaces in which jobs run, as JSON. */}}
{{- define "snaploom.spark.namespaces" -}}
{{- $namespaces := .Values.spark.namespaces -}}
{{- if not $namespaces -}}{{- $namespaces = .Values.watchNamespaces -}}{{- end -}}
{{- if not $namespaces -}}{{- $namespaces = list .Release.Namespace -}}{{- end -}}
{{- uniq $namespaces | toJson -}}
{{- end -}}

{{/* Our kinds, as RBAC and admission name them. */}}
{{- define "snaploom.kinds" -}}
- datarelationships
- datasources
- fieldtransformers
- metadataapplicators
- outputdatasets
- skippingindexes
{{- end -}}
