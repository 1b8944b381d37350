{{/*
The template of the pods of one Deployment. Takes a dict:
  root       the root
  values     the values of these pods
  component  the label that distinguishes them
  account    their ServiceAccount
  command    arguments of the program
  ports      ports of the container besides those for probes and metrics, by name
  volumes    volumes besides the settings and /tmp, as a list
  mounts     where these appear
  more       fields of the pod besides
*/}}
{{- define "snaploom.pods" -}}
{{- $root := .root -}}
{{- $pods := .values -}}
metadata:
  {{- $labels := merge (include "snaploom.selector" $root | fromYaml) $pods.labels $root.Values.commonLabels }}
  labels:
    {{- toYaml (merge (dict "app.kubernetes.io/component" .component) $labels) | nindent 4 }}
  {{- $settings := include "snaploom.settings" $root | sha256sum }}
  annotations:
    {{- toYaml (merge (dict "snaploom.io/settings" $settings) $pods.annotations) | nindent 4 }}
spec:
  serviceAccountName: {{ .account }}
  automountServiceAccountToken: true
  terminationGracePeriodSeconds: {{ $pods.terminationGracePeriodSeconds }}
  {{- with $pods.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml $pods.podSecurityContext | nindent 4 }}
  containers:
    - name: {{ .component }}
      image: {{ include "snaploom.image" (list $root $root.Values.image) | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      command: ["snaploom"]
      args: {{ concat .command $pods.extraArgs | toJson }}
      {{- with $pods.env }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: health
          containerPort: {{ $root.Values.healthPort }}
          protocol: TCP
        - name: readiness
          containerPort: {{ $root.Values.readinessPort }}
          protocol: TCP
        - name: metrics
          containerPort: {{ $root.Values.metrics.port }}
          protocol: TCP
        {{- range $name, $port := .ports }}
        - name: {{ $name }}
          containerPort: {{ $port }}
          protocol: TCP
        {{- end }}
      {{- /*
      On a busy node it may take long until Python has read all modules. An operator that waits for the
      Lease has not started; it may wait for as long as another one leads.
      */}}
      startupProbe:
        httpGet:
          path: /healthz
          port: health
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: {{ eq .component "operator" | ternary 2147483647 90 }}
      livenessProbe:
        httpGet:
          path: /healthz
          port: health
        {{- toYaml $pods.livenessProbe | nindent 8 }}
      readinessProbe:
        httpGet:
          path: /readyz
          port: readiness
        {{- toYaml $pods.readinessProbe | nindent 8 }}
      resources:
        {{- toYaml $pods.resources | nindent 8 }}
      securityContext:
        {{- toYaml $pods.securityContext | nindent 8 }}
      volumeMounts:
        - name: settings
          mountPath: /etc/snaploom/settings.yaml
          subPath: settings.yaml
          readOnly: true
        - name: tmp
          mountPath: /tmp
        {{- with .mounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with $pods.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: settings
      configMap:
        name: {{ include "snaploom.fullname" $root }}-settings
    - name: tmp
      emptyDir: {}
    {{- with .volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $pods.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $pods.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pods.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pods.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .more }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
