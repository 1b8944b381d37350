{{/* The settings of operator, webhook and pages, in the form of snaploom_operator.settings. */}}
{{- define "snaploom.settings" -}}
namespace: {{ .Release.Namespace }}
lease: {{ include "snaploom.operator.lease" . }}
watchNamespaces: {{ uniq .Values.watchNamespaces | toJson }}
submitters: {{ .Values.operator.submitters | toJson }}
workers: {{ .Values.operator.workers }}
resyncSeconds: {{ .Values.operator.resyncSeconds }}
limits:
  {{- toYaml .Values.operator.limits | nindent 2 }}
{{- with .Values.operator.queueScheduler }}
queueScheduler: {{ . }}
{{- end }}
healthPort: {{ .Values.healthPort }}
readinessPort: {{ .Values.readinessPort }}
metricsPort: {{ .Values.metrics.port }}
logFormat: {{ .Values.logs.format }}
logLevel: {{ .Values.logs.level }}
allowJdbcUrl: {{ .Values.allowJdbcUrl }}
allow:
  {{- toYaml .Values.allow | nindent 2 }}
lineage:
  {{- toYaml .Values.lineage | nindent 2 }}
clusterDomain: {{ .Values.clusterDomain | quote }}
admission:
  port: {{ .Values.admission.port }}
  protectDependants: {{ .Values.admission.protectDependants }}
  certificateFolder: {{ include "snaploom.certificates" . }}
  isCertificateRotated: {{ eq (include "snaploom.rotates" .) "true" }}
  certificateSecret: {{ include "snaploom.webhook.secret" . }}
  service: {{ include "snaploom.webhook.name" . }}
  configuration: {{ include "snaploom.fullname" . }}
  passedUsers: [{{ include "snaploom.operator.user" . | quote }}]
pages:
  port: {{ .Values.pages.port }}
  certificateFolder: {{ .Values.pages.tlsSecret | empty | ternary "" (include "snaploom.pages.certificate" .) | quote }}
spark:
  {{- $application := deepCopy .Values.spark.application }}
  {{- $image := include "snaploom.image" (list . .Values.spark.image) }}
  {{- $chosen := dict "image" $image "serviceAccountName" (include "snaploom.spark.account" .) }}
  {{- if .Values.metrics.podMonitor.enabled }}
  {{- $figures := include "snaploom.sparkFigures" . | fromYaml }}
  {{- $_ := set $application "sparkConf" (merge (dict) ($application.sparkConf | default dict) $figures) }}
  {{- end }}
  {{- toYaml (merge $application $chosen) | nindent 2 }}
comet:
  image: {{ include "snaploom.image" (list . .Values.spark.comet.image) | quote }}
  sparkVersion: {{ .Values.spark.comet.sparkVersion | quote }}
{{- end -}}

{{/* Settings by which a driver exports its metrics, and those of its executors. */}}
{{- define "snaploom.sparkFigures" -}}
spark.ui.enabled: "true"
spark.ui.prometheus.enabled: "true"
spark.metrics.conf.*.sink.prometheusServlet.class: org.apache.spark.metrics.sink.PrometheusServlet
spark.metrics.conf.*.sink.prometheusServlet.path: /metrics/prometheus
spark.metrics.conf.*.source.jvm.class: org.apache.spark.metrics.source.JvmSource
# Names of figures begin with it; Spark's default is another for each run.
spark.metrics.namespace: snaploom
{{- end -}}

{{/* The operator, as the API server knows it. */}}
{{- define "snaploom.operator.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "snaploom.operator.account" . }}
{{- end -}}

{{/* Folder of the pages' certificate in their pods. */}}
{{- define "snaploom.pages.certificate" -}}
/etc/snaploom/pages
{{- end -}}

{{/* Folder of the webhook's certificate in its pods. */}}
{{- define "snaploom.certificates" -}}
/etc/snaploom/certificates
{{- end -}}
