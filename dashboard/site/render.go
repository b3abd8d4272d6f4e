package site

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"path"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/dashboard/chart"
)

//go:embed templates
var templateFiles embed.FS

// Templates shared by all pages.
const (
	layoutFile   = "templates/layout.html"
	partsPattern = "templates/part-*.html"
)

// pages holds the parsed templates by name.
type pages struct{ byName map[string]*template.Template }

func newPages(a assets) (*pages, error) {
	base, err := template.New("").Funcs(template.FuncMap{
		"asset": a.url, "count": countAny, "date": Date, "moment": moment, "exact": exact, "ago": ago, "bytes": inBytes, "code": marked, "sentenceCase": Capital, "typeTable": newTypeTable, "breakable": breakable, "noun": noun,
	}).ParseFS(templateFiles, layoutFile, partsPattern)
	if err != nil {
		return nil, err
	}
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	p := &pages{byName: make(map[string]*template.Template)}
	for _, file := range files {
		name := file.Name()
		if strings.HasPrefix(name, "part-") || path.Join("templates", name) == layoutFile {
			continue
		}
		page, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if page, err = page.ParseFS(templateFiles, path.Join("templates", name)); err != nil {
			return nil, err
		}
		p.byName[strings.TrimSuffix(name, ".html")] = page
	}
	return p, nil
}

// link is an entry of the navigation.
type link struct {
	Path, Text string
	Here       bool // it is the current page, or the list that contains it
}

// frame is the data of the layout.
type frame struct {
	Title    string
	Account  *account.Account // the signed-in account, or nil
	Chosen   Chosen           // the account that the page is about
	Choices  []switchLine     // accounts that the visitor can choose; nil if there is only one
	Links    []link
	Operator []link // for operators only
	Docs     []link // the pages of the documentation
	Said     string // message about the last action
	SignUp   bool   // registration is open to the visitor
	Status   bool   // the status page exists
	Mails    bool   // e-mail addresses are verified
	Provider string // name of the sign-in provider; empty: none
	Content  any    // data of the page's own template
}

// render writes a page, completely or not at all.
func (p *pages) render(w http.ResponseWriter, status int, name string, f frame) error {
	page, ok := p.byName[name]
	if !ok {
		return fmt.Errorf("unknown page %q", name)
	}
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, "layout", f); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := out.WriteTo(w)
	_ = err // the client has disconnected
	return nil
}

// renderPart writes a part of a page.
func (p *pages) renderPart(w http.ResponseWriter, name, part string, data any) error {
	var out bytes.Buffer
	if err := p.byName[name].ExecuteTemplate(&out, part, data); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = out.WriteTo(w) // an error means that the client has disconnected
	return nil
}

// Count formats a number with commas between the thousands.
func Count[N uint64 | uint32 | int](n N) string { return chart.Grouped(float64(n)) }

// Amount formats a number with a noun, such as "1 call" or "2 calls".
func Amount[N uint64 | uint32 | int](n N, one string) string {
	return Count(n) + " " + noun(Count(n), one)
}

// noun returns the form of a noun that follows a formatted number.
func noun(number, one string) string {
	if number == "1" {
		return one
	}
	return one + "s"
}

// countAny is count for templates, which have numbers of several types.
func countAny(n any) (string, error) {
	switch n := n.(type) {
	case uint64:
		return Count(n), nil
	case uint32:
		return Count(n), nil
	case int:
		return Count(n), nil
	}
	return "", fmt.Errorf("cannot format %T (want an integer)", n)
}

// marked renders a text whose parts between backquotes are code.
func marked(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

// Capital begins a text with a capital letter.
func Capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func Date(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006")
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006, 15:04 UTC")
}

// exact formats a time to the second.
func exact(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04:05 UTC") }

// ago formats roughly how long ago t was.
func ago(t time.Time) string {
	past := time.Since(t)
	switch {
	case t.IsZero():
		return "never"
	case past < 2*time.Second:
		return "just now"
	case past < 2*time.Minute:
		return fmt.Sprintf("%d seconds ago", int(past.Seconds()))
	case past < 2*time.Hour:
		return fmt.Sprintf("%d minutes ago", int(past.Minutes()))
	case past < 48*time.Hour:
		return fmt.Sprintf("%d hours ago", int(past.Hours()))
	case past < 2*365*24*time.Hour:
		return fmt.Sprintf("%d days ago", int(past.Hours()/24))
	}
	return fmt.Sprintf("%d years ago", int(past.Hours()/24/365))
}

// breakable allows lines to break after the dots and underscores of a name, so that they need
// not break within a word.
func breakable(name string) template.HTML {
	return template.HTML(strings.NewReplacer(".", ".<wbr>", "_", "_<wbr>").Replace(template.HTMLEscapeString(name)))
}

// inBytes formats a number of bytes with a unit.
func inBytes(n int64) string {
	value, units := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	for value >= 1024 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	if units[0] == "bytes" {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[0])
}

// Credits formats credits, which may be a fraction in a rate.
func Credits(n float64) string {
	if n < 10 && n != math.Trunc(n) {
		return fmt.Sprintf("%.1f", n)
	}
	return chart.Grouped(n)
}

// CreditAmount is Credits with the noun.
func CreditAmount(n float64) string { return Credits(n) + " " + noun(Credits(n), "credit") }

// Share formats a part of a whole in per cent.
func Share(part, whole uint64) string {
	if whole == 0 || part == 0 {
		return "0 %"
	}
	percent := 100 * float64(part) / float64(whole)
	switch {
	case percent < .1:
		return "< 0.1 %"
	case part == whole:
		return "100 %"
	case percent > 99.9: // or it would be rounded to all of them
		return "> 99.9 %"
	}
	return fmt.Sprintf("%.1f %%", percent)
}

// Duration formats a waiting time.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Day returns the start of a day in UTC.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
