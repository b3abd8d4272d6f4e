package site

import "strings"

// formsOnly returns pages for the paths to which only forms lead. When a rejected form is opened
// again from the address bar, a bookmark or a restored tab, they redirect to the closest page above,
// which has the form.
func formsOnly(all []Page) (more []Page) {
	get := make(map[string]bool)
	var posts []string
	for _, p := range all {
		for _, pattern := range p.patterns {
			switch method, path, _ := strings.Cut(pattern, " "); method {
			case "GET":
				get[strings.TrimSuffix(path, "{$}")] = true
			case "POST":
				posts = append(posts, path)
			}
		}
	}
	for _, path := range posts {
		if get[path] {
			continue
		}
		up, above := 0, path
		for ; above != "/" && !get[above]; up++ {
			above = parent(above)
		}
		more = append(more, ForAll("GET "+path, func(v *Visit) error {
			to := v.R.URL.EscapedPath()
			for range up {
				to = parent(to)
			}
			return v.Redirect(to)
		}))
	}
	return more
}

// parent returns a path without its last part.
func parent(path string) string { return path[:max(1, strings.LastIndexByte(path, '/'))] }
