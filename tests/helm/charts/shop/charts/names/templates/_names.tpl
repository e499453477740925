{{- define "names.full" -}}
{{ .Release.Name }}-{{ .Chart.Name }}
{{- end }}
