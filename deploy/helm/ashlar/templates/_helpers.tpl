{{- define "ashlar.labels" -}}
app.kubernetes.io/name: ashlar
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "ashlar.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
