{{- define "ashlar.labels" -}}
app.kubernetes.io/name: ashlar
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- /* The ports of the networks' listeners for consensus clients, those that other pods can reach. */ -}}
{{- define "ashlar.enginePorts" -}}
{{- $ports := list }}
{{- range .Values.config.networks }}
{{- $listen := dig "engine" "listen" "" (. | default dict) }}
{{- if regexMatch "^(0\\.0\\.0\\.0|\\[::\\])?:[0-9]+$" $listen }}
{{- $ports = append $ports (regexFind "[0-9]+$" $listen) }}
{{- end }}
{{- end }}
{{- join " " $ports }}
{{- end }}
{{- define "ashlar.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
