{{- /*
Values that cannot work together, or for a reason that a schema cannot tell: refused, with the reason.
*/}}
{{- define "snaploom.checks" -}}
{{- $ports := dict "healthPort" .Values.healthPort "readinessPort" .Values.readinessPort "metrics.port" .Values.metrics.port }}
{{- if .Values.admission.enabled }}{{- $_ := set $ports "admission.port" .Values.admission.port }}{{- end }}
{{- $seen := dict }}
{{- range $name := keys $ports | sortAlpha }}
{{- $port := toString (int64 (get $ports $name)) }}
{{- if hasKey $seen $port }}
{{- fail (printf "%s: found %s, which is also %s; expected a port of its own: one container listens on both. Choose another one for either." $name $port (get $seen $port)) }}
{{- end }}
{{- $_ := set $seen $port $name }}
{{- end }}
{{- if .Values.pages.enabled }}
{{- range $name, $other := dict "healthPort" .Values.healthPort "readinessPort" .Values.readinessPort "metrics.port" .Values.metrics.port }}
{{- if eq (int64 $other) (int64 $.Values.pages.port) }}
{{- fail (printf "pages.port: found %d, which is also %s; expected a port of its own: one container listens on both. Choose another one for either." (int64 $other) $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- $name := include "snaploom.fullname" . }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- fail (printf "fullnameOverride: found %s, which names of objects begin with; expected lower-case letters, digits and hyphens, a letter first: a Service takes no other name. Give another one, or name the release so." $name) }}
{{- end }}
{{- range $values, $pods := dict "operator" .Values.operator "admission" .Values.admission "pages" .Values.pages }}
{{- range $number, $argument := $pods.extraArgs }}
{{- if regexMatch "^--(settings|local|kubeconfig|context)([=-]|$)" $argument }}
{{- fail (printf "%s.extraArgs[%d]: found %s; expected an argument that the chart does not set: settings come from these values, the cluster from the pod's account, and jobs are started by operator.submitters. Leave it out." $values $number $argument) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "snaploom.checks.accounts" . }}
{{- include "snaploom.checks.times" . }}
{{- end -}}

{{- define "snaploom.checks.accounts" -}}
{{- $accounts := dict }}
{{- if .Values.operator.serviceAccount.create }}{{- $_ := set $accounts "operator.serviceAccount.name" (include "snaploom.operator.account" .) }}{{- end }}
{{- if and .Values.admission.enabled .Values.admission.serviceAccount.create }}{{- $_ := set $accounts "admission.serviceAccount.name" (include "snaploom.webhook.account" .) }}{{- end }}
{{- if and .Values.pages.enabled .Values.pages.serviceAccount.create }}{{- $_ := set $accounts "pages.serviceAccount.name" (include "snaploom.pages.account" .) }}{{- end }}
{{- $isHere := has .Release.Namespace (include "snaploom.spark.namespaces" . | fromJsonArray) }}
{{- if and $isHere .Values.spark.serviceAccount.create }}{{- $_ := set $accounts "spark.serviceAccount.name" (include "snaploom.spark.account" .) }}{{- end }}
{{- $seen := dict }}
{{- range $name := keys $accounts | sortAlpha }}
{{- $account := get $accounts $name }}
{{- if hasKey $seen $account }}
{{- fail (printf "%s: found %s, which is also %s; expected an account of its own: the chart cannot create one object twice. Choose another one for either, or create it yourself and set `create` to false." $name $account (get $seen $account)) }}
{{- end }}
{{- $_ := set $seen $account $name }}
{{- end }}
{{- end -}}

{{- define "snaploom.checks.times" -}}
{{- range $name, $monitor := dict "serviceMonitor" .Values.metrics.serviceMonitor "podMonitor" .Values.metrics.podMonitor }}
{{- if and $monitor.enabled $monitor.scrapeTimeout }}
{{- if gt (include "snaploom.milliseconds" $monitor.scrapeTimeout | int64) (include "snaploom.milliseconds" $monitor.interval | int64) }}
{{- fail (printf "metrics.%s.scrapeTimeout: found %s; expected at most the interval, %s: Prometheus refuses to wait longer for an answer than until the next question. Make it shorter, or the interval longer." $name $monitor.scrapeTimeout $monitor.interval) }}
{{- end }}
{{- end }}
{{- end }}
{{- $certificate := .Values.admission.certManager }}
{{- if and .Values.admission.enabled $certificate.enabled }}
{{- if ge (include "snaploom.milliseconds" $certificate.renewBefore | int64) (include "snaploom.milliseconds" $certificate.duration | int64) }}
{{- fail (printf "admission.certManager.renewBefore: found %s; expected less than duration, %s: a certificate would be renewed before it is issued. Make it shorter, or duration longer." $certificate.renewBefore $certificate.duration) }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Milliseconds of a length of time, such as 1m30s. */}}
{{- define "snaploom.milliseconds" -}}
{{- $sum := 0 }}
{{- range regexFindAll "[0-9]+[a-z]+" . -1 }}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000 "w" 604800000 }}
{{- $sum = add $sum (mul (regexFind "[0-9]+" . | int64) (get $units (regexFind "[a-z]+" .))) }}
{{- end }}
{{- $sum }}
{{- end -}}
