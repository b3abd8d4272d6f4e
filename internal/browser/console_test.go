package browser

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/internal/vectors"

	"golang.org/x/net/html"
)

// client visits pages without a browser, for tests of very many pages.
type client struct {
	*testing.T
	http http.Client
	base string
}

// signedIn returns a client with a session of the operator.
func (s service) signedIn(t *testing.T) *client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, http.Client{Jar: jar}, s.url}
	c.post("/signin", url.Values{"email": {s.operator}, "password": {s.password}})
	return c
}

func (c *client) get(path string) *html.Node {
	c.Helper()
	response, err := c.http.Get(c.base + path)
	return c.page(response, err)
}

func (c *client) post(path string, form url.Values) *html.Node {
	c.Helper()
	response, err := c.http.PostForm(c.base+path, form)
	return c.page(response, err)
}

func (c *client) page(response *http.Response, err error) *html.Node {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	page, err := html.Parse(response.Body)
	if err != nil || response.StatusCode >= 500 {
		c.Fatalf("%s: %d, %v", response.Request.URL, response.StatusCode, err)
	}
	return page
}

// attribute returns an attribute of an element, and whether it has it.
func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// elements returns the elements below n for which is returns true.
func elements(n *html.Node, is func(*html.Node) bool) (found []*html.Node) {
	for one := range n.Descendants() {
		if one.Type == html.ElementNode && is(one) {
			found = append(found, one)
		}
	}
	return found
}

// labelled returns the element that another one with an ID labels, or nil.
func labelled(page *html.Node, id string) *html.Node {
	found := elements(page, func(n *html.Node) bool { by, _ := attribute(n, "aria-labelledby"); return by == id })
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

func named(name string) func(*html.Node) bool {
	return func(n *html.Node) bool { return n.Data == name }
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for one := range n.Descendants() {
		if one.Type == html.TextNode {
			b.WriteString(one.Data)
		}
	}
	return b.String()
}

// values returns what a browser sends for a form.
func values(form *html.Node) url.Values {
	sent := url.Values{}
	for _, field := range elements(form, func(n *html.Node) bool { return n.Data == "input" || n.Data == "select" || n.Data == "textarea" }) {
		name, _ := attribute(field, "name")
		value, _ := attribute(field, "value")
		switch field.Data {
		case "textarea":
			value = textOf(field)
		case "select":
			for _, option := range elements(field, named("option")) {
				if _, selected := attribute(option, "selected"); selected {
					value, _ = attribute(option, "value")
				}
			}
		}
		sent.Add(name, value)
	}
	return sent
}

// options returns the values of a list.
func options(page *html.Node, id string) (all []string) {
	for _, list := range elements(page, func(n *html.Node) bool { is, _ := attribute(n, "id"); return is == id }) {
		for _, option := range elements(list, named("option")) {
			value, _ := attribute(option, "value")
			all = append(all, value)
		}
	}
	return all
}

// consoleNotes returns the notices of the console before a request is sent.
func consoleNotes(page *html.Node) string {
	var all []string
	for _, n := range elements(page, func(n *html.Node) bool { class, _ := attribute(n, "class"); return class == "notice" }) {
		all = append(all, textOf(n))
	}
	return strings.Join(all, " ")
}

// Every example that the console offers is answered with a result, whether it is sent as a
// form or as a request. Only the examples that say otherwise get an error.
func TestEveryConsoleExample(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signedIn(t)
	noted := 0
	for _, network := range options(c.get("/console"), "network") {
		methods := options(c.get("/console?network="+network), "method")
		if len(methods) < 8 {
			t.Errorf("%s has %d methods", network, len(methods))
		}
		for _, method := range methods {
			page := c.get("/console?network=" + network + "&method=" + method)
			fails := strings.Contains(consoleNotes(page), "The example is")
			if fails {
				noted++
			}
			for _, way := range []string{"by-parameters", "by-request"} {
				form := values(labelled(page, way))
				if way == "by-parameters" {
					form.Set("do", "params")
				}
				answer := labelled(c.post("/console", form), "answered")
				if answer == nil {
					t.Errorf("%s, %s: no answer to %v", method, way, form)
					continue
				}
				text := textOf(answer)
				failed := strings.Contains(textOf(elements(answer, named("header"))[0]), "error ")
				if failed != fails || failed == strings.Contains(text, `"result":`) {
					t.Errorf("%s on %s, %s is answered %.400s\nsent %v", method, network, way, strings.Join(strings.Fields(text), " "), form)
				}
			}
		}
	}
	if noted != 2 {
		t.Errorf("%d examples say that they fail, expected those that send a transaction", noted)
	}
}

// The programs that the console shows for a request can be run as they are, with a key.
func TestConsolePrograms(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("ASHLAR_CLIENTS")
	if folder == "" {
		vectors.Missing(t, "needs client libraries: run internal/clients/install.sh DIR and set ASHLAR_CLIENTS to DIR")
	}
	s := serve(t)
	c := s.signedIn(t)
	keys := make(map[bool][2]string) // by whether it has a password: the key and the password
	for _, guarded := range []bool{false, true} {
		form := url.Values{"name": {fmt.Sprintf("guarded %t", guarded)}}
		if guarded {
			form.Set("guarded", "yes")
		}
		page := c.post("/keys/new", form)
		var secrets [2]string
		for i, id := range []string{"api-key", "api-password"} {
			for _, n := range elements(page, func(n *html.Node) bool { is, _ := attribute(n, "id"); return is == id }) {
				secrets[i] = textOf(n)
			}
		}
		keys[guarded] = secrets
	}
	for _, choice := range []struct {
		network, method, want string
		guarded               bool // also with a password, which programs send for any method
	}{
		{"demo", "eth_blockNumber", `0x`, true}, {"demo", "eth_getLogs", `transactionHash`, false}, {"demo", "eth_feeHistory", `baseFeePerGas`, false},
		{"demo", "eth_getBlockByNumber", `parentHash`, false},
		{"demo-starknet", "starknet_specVersion", `0.`, true}, {"demo-starknet", "starknet_getBlockWithTxHashes", `parent_hash`, false},
	} {
		for guarded, secrets := range keys {
			if guarded && !choice.guarded {
				continue
			}
			page := c.get("/console?network=" + choice.network + "&method=" + choice.method)
			for _, option := range elements(page, named("option")) {
				if textOf(option) == fmt.Sprintf("guarded %t", guarded) {
					id, _ := attribute(option, "value")
					page = c.get("/console?network=" + choice.network + "&method=" + choice.method + "&key=" + id)
				}
			}
			programs := elements(labelled(page, "programs"), named("details"))
			if len(programs) < 3 {
				t.Fatalf("%s has %d programs", choice.method, len(programs))
			}
			for _, one := range programs {
				tool := textOf(elements(one, named("summary"))[0])
				text := textOf(elements(one, named("pre"))[0])
				t.Run(fmt.Sprintf("%s with %s, password %t", choice.method, tool, guarded), func(t *testing.T) {
					text := withSecrets(text, secrets)
					if out := runProgram(t, tool, text, folder); !strings.Contains(out, choice.want) {
						t.Errorf("%s\nprints %.500s", text, out)
					}
				})
			}
		}
	}
}

// withSecrets fills a key and a password into a program.
func withSecrets(text string, secrets [2]string) string {
	text = strings.NewReplacer("YOUR-KEY", secrets[0], "YOUR-PASSWORD", secrets[1]).Replace(text)
	return strings.ReplaceAll(text, basic("YOUR-PASSWORD"), basic(secrets[1]))
}

// basic returns a password as HTTP's Basic authentication sends it.
func basic(password string) string { return base64.StdEncoding.EncodeToString([]byte(":" + password)) }

// runProgram runs a program as a user would, and returns what it prints.
func runProgram(t *testing.T, tool, text, folder string) string {
	t.Helper()
	if tool != "Go" {
		return pasted{Tool: tool, Text: text}.run(t, folder)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v: %s", text, err, out)
	}
	return string(out)
}
