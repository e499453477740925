{{- define "shop.labels" }}
app: {{ include "names.full" . }}
{{- end }}
