package proxies

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar/internal/node"

	"github.com/coder/websocket"
)

// TestGuide starts a server and a proxy with the configurations of the guide. Only
// addresses and paths are replaced.
func TestGuide(t *testing.T) {
	cert, key, roots := certificate(t)
	service := imported(t)
	address := freeAddress(t)
	config := replace(t, guide(t, "# Behind a reverse proxy or load balancer"), "127.0.0.1:8545", address) + guide(t, "## Opening the dashboard")
	server := serve(t, service, address, config+"data: "+service.Data+"\n")
	paths := []string{"/etc/ssl/example.org.pem", cert, "/etc/ssl/example.org.key", key, "127.0.0.1:8545", address}

	t.Run("Caddy", func(t *testing.T) {
		proxy := caddy(t, replace(t, guide(t, "## Caddy"), paths...))
		j := journey{service, proxy, roots, "second@example.org"}
		j.opens(t, firstLink.FindString(server.Output())) // before there is an operator
		j.run(t)
	})
	t.Run("nginx", func(t *testing.T) {
		bin, proxy := program(t, "nginx", "ASHLAR_NGINX"), freeAddress(t)
		dir := t.TempDir()
		site := replace(t, guide(t, "## nginx"), append(paths, "listen 443 ssl http2", "listen "+proxy+" ssl http2")...)
		main := "daemon off;\nuser root;\npid DIR/pid;\nerror_log DIR/error.log;\nevents {}\nhttp {\n" +
			"access_log off;\nclient_body_temp_path DIR/body;\nproxy_temp_path DIR/proxy;\n" +
			"fastcgi_temp_path DIR/fastcgi;\nuwsgi_temp_path DIR/uwsgi;\nscgi_temp_path DIR/scgi;\n"
		file := write(t, filepath.Join(dir, "nginx.conf"), strings.ReplaceAll(main, "DIR", dir)+site+"}\n")
		run(t, bin, "-c", file, "-e", filepath.Join(dir, "start.log"))
		j := journey{service, proxy, roots, "first@example.org"}
		j.run(t)
		j.withoutHost(t)
	})
}

// journey is what clients do through a proxy.
type journey struct {
	service  node.Ashlar
	proxy    string // its address
	roots    *x509.CertPool
	operator string // an e-mail address for the dashboard
}

func (j journey) run(t *testing.T) {
	key, err := j.service.CreateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.service.RestrictKey(t.Context(), key, "--addresses", "127.0.0.2"); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, j.proxy, "127.0.0.2", j.roots)
	endpoint := "https://" + network + ".example.org/v3/" + key
	var response *http.Response
	var answer string
	await(t, func() (err error) {
		response, answer, err = post(client, endpoint, askChainID)
		return err
	})
	if response.ProtoMajor != 2 || !strings.Contains(answer, `"result":`+chainID) {
		t.Errorf("a call: %s %s, expected HTTP/2 and the chain ID %s", response.Proto, answer, chainID)
	}

	// The key works from the address of this client only, whatever a client claims.
	stranger := clientOf(t, j.proxy, "127.0.0.3", j.roots)
	for _, forged := range [][]string{nil, {"X-Forwarded-For", "127.0.0.2"}} {
		if response, answer, err := post(stranger, endpoint, askChainID, forged...); err != nil || response.StatusCode != http.StatusForbidden {
			t.Errorf("another client with the headers %q: %v %s, expected 403", forged, err, answer)
		}
	}
	j.socket(t, key)

	large := strings.Replace(askChainID, "[]", `["`+strings.Repeat("0", 4<<20)+`"]`, 1)
	if response, answer, err := post(client, endpoint, large); err != nil || !strings.Contains(answer, `"code":-32602`) {
		t.Errorf("4 MiB: %v %v %.200s, expected the service's own error", err, response, answer)
	}

	j.dashboard(t, client)
}

// withoutHost makes calls as clients of HTTP/1.0 do, to a server with one network. nginx names the host of its configuration
// then, which no network has.
func (j journey) withoutHost(t *testing.T) {
	key, err := j.service.CreateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v3/" + key, "/" + network + "/v3/" + key} {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: j.roots, ServerName: "dash.example.org"}}).DialContext(t.Context(), "tcp", j.proxy)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(askChainID), askChainID); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), `"result":`+chainID) {
			t.Errorf("without a Host, %s: %v %s, expected the chain ID %s", path, err, answer, chainID)
		}
	}
}

// firstLink matches the link in a server's log that creates the first operator.
var firstLink = regexp.MustCompile(`[a-z]+://[^ "]+/setup[?]token=[0-9a-f]+`)

// opens opens a link as a browser does, and expects a page with a form for a password.
func (j journey) opens(t *testing.T, link string) {
	if link == "" {
		t.Fatal("there is no link to open")
	}
	client := clientOf(t, j.proxy, "127.0.0.1", j.roots)
	await(t, func() error { // the proxy may still be starting
		response, err := client.Get(link)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK || !strings.Contains(string(page), `name="password"`) {
			t.Errorf("%s: %s %v\n%s", link, response.Status, err, page)
		}
		return nil
	})
}

// dashboard creates an operator with the command of the guide, opens the link that it prints, and sets the password.
func (j journey) dashboard(t *testing.T, client *http.Client) {
	var printed strings.Builder
	create := exec.CommandContext(t.Context(), j.service.Bin, "account", "create", "--data", j.service.Data, j.operator, "--role", "operator")
	create.Stderr = &printed
	token, err := create.Output()
	if err != nil {
		t.Fatalf("%v %s", err, &printed)
	}
	_, link, _ := strings.Cut(strings.TrimSpace(printed.String()), "link: ")
	if !strings.HasPrefix(link, "https://dash.example.org/") {
		t.Fatalf("printed: %q, expected a link to the proxy", &printed)
	}
	j.opens(t, link)
	form := url.Values{"token": {strings.TrimSpace(string(token))}, "password": {"correct horse battery staple"}}
	response, err := client.PostForm("https://dash.example.org/reset", form)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	cookies := response.Cookies()
	if response.StatusCode != http.StatusSeeOther || len(cookies) == 0 || !cookies[0].Secure {
		t.Errorf("the dashboard: %s with the cookies %v, expected a secure one", response.Status, cookies)
	}
}

// socket makes a call over a WebSocket.
func (j journey) socket(t *testing.T, key string) {
	client := clientOf(t, j.proxy, "127.0.0.2", j.roots)
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	conn, err := dialSocket(t.Context(), client, "wss://"+network+".example.org/ws/v3/"+key)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(askChainID)); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := conn.Read(t.Context()); err != nil || !strings.Contains(string(answer), chainID) {
		t.Errorf("over a WebSocket: %v %s", err, answer)
	}
}
