package family

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// GoProgram is a [Snippet]'s text that calls a method with params and prints the answer. It
// needs Go's standard library only.
func GoProgram(url, password, method string, params json.RawMessage) string {
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%s,"params":%s}`, strconv.Quote(method), params)
	auth := ""
	if password != "" {
		auth = "\n\trequest.SetBasicAuth(\"\", " + strconv.Quote(password) + ")"
	}
	return Lines(
		`package main`, ``, `import (`, "\t\"io\"", "\t\"log\"", "\t\"net/http\"", "\t\"os\"", "\t\"strings\"", `)`, ``,
		`func main() {`,
		"\tbody := strings.NewReader(`"+strings.ReplaceAll(request, "`", `\u0060`)+"`)",
		"\trequest, err := http.NewRequest(http.MethodPost, "+strconv.Quote(url)+", body)",
		"\tif err != nil {", "\t\tlog.Fatal(err)", "\t}",
		"\trequest.Header.Set(\"Content-Type\", \"application/json\")"+auth,
		"\tresponse, err := http.DefaultClient.Do(request)",
		"\tif err != nil {", "\t\tlog.Fatal(err)", "\t}",
		"\tdefer response.Body.Close()",
		"\tif _, err := io.Copy(os.Stdout, response.Body); err != nil {", "\t\tlog.Fatal(err)", "\t}",
		`}`)
}

// PythonValue returns a JSON value as Python writes it.
func PythonValue(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return "None"
	}
	var b strings.Builder
	writePython(&b, value)
	return b.String()
}

func writePython(b *strings.Builder, value any) {
	switch value := value.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[value])
	case string:
		text, _ := json.Marshal(value) // JSON's escapes are Python's too
		b.Write(text)
	case []any:
		b.WriteByte('[')
		for i, one := range value {
			if i > 0 {
				b.WriteString(", ")
			}
			writePython(b, one)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(value)) {
			if i > 0 {
				b.WriteString(", ")
			}
			writePython(b, name)
			b.WriteString(": ")
			writePython(b, value[name])
		}
		b.WriteByte('}')
	default:
		fmt.Fprint(b, value)
	}
}
