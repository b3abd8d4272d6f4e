package config

import (
	"fmt"
	"io"
	"strings"

	"ashlar/family"
)

// exampleWidth is the width of the comments in an example.
const exampleWidth = 96

// WriteExample writes a configuration with every entry, its default and its meaning. All
// entries are comments, so the file as it is changes nothing.
func WriteExample(out io.Writer, families family.Families) error {
	_, err := fmt.Fprint(out, "# Every entry of ashlar.yaml, with its default. Remove the # of an entry and of the groups above it to\n# change it. docs/configuration.md says more.\n")
	for _, e := range Describe(families) {
		if err == nil {
			_, err = io.WriteString(out, "\n"+e.example(""))
		}
	}
	return err
}

// example returns the lines of an entry.
func (e *Entry) example(indent string) string {
	var out strings.Builder
	for _, line := range wrap(e.Meaning, exampleWidth-len(indent)) {
		fmt.Fprintf(&out, "#%s # %s\n", indent, line)
	}
	fmt.Fprintf(&out, "#%s%s:%s\n", indent, e.Name, strings.TrimRight(" "+e.Default, " "))
	for i := range e.Group {
		out.WriteString(e.Group[i].example(indent + "  "))
	}
	return out.String()
}

// wrap breaks a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
