package api

import (
	"strings"

	"ashlar/parameter"
)

// maxArguments is the maximum number of arguments of any method that is not passed on as it is.
const maxArguments = 4

// replaced returns the arguments as JSON, of which argument n is replaced by another one.
// Missing arguments at the end are left out.
func replaced(args *parameter.Arguments, n int, other string) string {
	last := n
	for i := range maxArguments {
		if args.Given(i) {
			last = max(last, i)
		}
	}
	var b strings.Builder
	for i := range last + 1 {
		b.WriteByte("[,"[min(i, 1)])
		switch {
		case i == n:
			b.WriteString(other)
		case args.Given(i):
			b.Write(args.Raw(i))
		default:
			b.WriteString("null")
		}
	}
	b.WriteByte(']')
	return b.String()
}
