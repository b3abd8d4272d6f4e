// Package docs holds the parts of the documentation that the program shows, so that there
// is one description of them.
package docs

import _ "embed"

// Configuration is configuration.md, whose tables describe the entries of ashlar.yaml.
//
//go:embed configuration.md
var Configuration string
