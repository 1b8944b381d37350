{{- /*
Values that cannot work together, which a schema cannot compare: refused, with the reason.
*/}}
{{- define "snaploom.checks" -}}
{{- $ports := dict "healthPort" .Values.healthPort "metrics.port" .Values.metrics.port }}
{{- if .Values.admission.enabled }}{{- $_ := set $ports "admission.port" .Values.admission.port }}{{- end }}
{{- $seen := dict }}
{{- range $name := keys $ports | sortAlpha }}
{{- $port := toString (int64 (get $ports $name)) }}
{{- if hasKey $seen $port }}
{{- fail (printf "%s: found %s, which is also %s; expected a port of its own: one container listens on both. Choose another one for either." $name $port (get $seen $port)) }}
{{- end }}
{{- $_ := set $seen $port $name }}
{{- end }}
{{- end -}}
