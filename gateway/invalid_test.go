package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/gateway"
	"ashlar/limit"
)

// A request whose body is not read, or not to the end, costs as much as the cheapest method.
func TestInvalidRequestsAreCharged(t *testing.T) {
	for _, c := range []struct {
		name, body, kind, encoding string
		status                     int
	}{
		{"content type", call("test_name"), "text/plain", "", 415},
		{"content encoding", call("test_name"), "application/json", "br", 415},
		{"too long", padded(10_001), "application/json", "", 413},
		{"not compressed", call("test_name"), "application/json", "gzip", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{
				BodyBytes: 10_000, Key: gateway.KeyLimits{Rate: limit.Rate{PerSecond: 0.001, Burst: 3}},
			}}, 0)
			for n, want := range []int{c.status, c.status, c.status, 429} {
				response, answer := s.ask("POST", "/v3/"+goodKey, c.body, "Content-Type", c.kind, "Content-Encoding", c.encoding)
				if response.StatusCode != want || (response.Header.Get("Retry-After") != "") != (want == 429) {
					t.Errorf("request %d: %d %s, expected %d", n, response.StatusCode, answer, want)
				}
			}
			if got := s.handler.Stats().Refused[gateway.RefusedRate]; got != 1 {
				t.Errorf("%d refusals because of the rate, expected 1", got)
			}
		})
	}
}

// What was read of a body that is too long costs as much as that of a request that is answered.
func TestBytesOfLongBodiesAreCharged(t *testing.T) {
	for name, body := range map[string]string{"": padded(100_001), "gzip": zipped(t, strings.Repeat(" ", 10_000_000))} {
		p := newPeople(t)
		one := p.key(account.NewKey{Rules: account.Rules{PerDay: 1000}})
		s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Usage: p.usage, Limits: gateway.Limits{BodyBytes: 100_000}}, 0)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v3/"+one.APIKey, struct{ io.Reader }{strings.NewReader(body)}) // of unknown length
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Content-Encoding", name)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != 413 {
			t.Errorf("%q: status %d, expected 413", name, response.StatusCode)
		}
		lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{one.Key.ID}, To: time.Now().Add(time.Hour)})
		if err != nil || len(lines) != 1 || lines[0].Counts.Credits < 13 || lines[0].Counts.Credits > 26 {
			t.Errorf("%q: counted %+v, %v: expected 1 credit, 12 for 100,001 bytes, and at most 13 for those that were read with them", name, lines, err)
		}
	}
}

// Requests for what is not served count like those without a valid key, so names of networks cannot be
// guessed at any rate. They use up nothing that valid requests need. With a valid key they take credits of
// the address instead.
func TestUnservedRequestsCountForTheAddress(t *testing.T) {
	const wrong = "00112233445566778899aabbccddeeff"
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/beta/v3/KEY", 404},
		{"POST", "/v3/KEY/rpc/v9", 404},
		{"GET", "/v3/KEY", 405},
		{"POST", "/ws/v3/KEY", 405},
		{"GET", "/nothing", 404},
		{"GET", "/openrpc/beta.json", 404},
		{"POST", "/openrpc/alpha.json", 405},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			s := start(t, gateway.Config{
				Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{
					Failures: limit.Rate{PerSecond: 0.001, Burst: 2}, Address: limit.Rate{PerSecond: 0.001, Burst: 4},
				},
			}, 0)
			asked := func(key string, reason gateway.Reason, wanted ...int) {
				t.Helper()
				for n, want := range wanted {
					response, answer := s.ask(c.method, strings.Replace(c.path, "KEY", key, 1), call("test_name"))
					if response.StatusCode != want || (response.Header.Get("Retry-After") != "") != (want == 429) {
						t.Errorf("request %d: %d %s, expected %d", n, response.StatusCode, answer, want)
					}
				}
				if got := s.handler.Stats().Refused[reason]; got != 1 {
					t.Errorf("%d refusals of %v, expected 1", got, reason)
				}
			}
			asked(wrong, gateway.RefusedAddress, c.status, c.status, 429)
			if response, answer := s.post(call("test_name")); response.StatusCode != 200 {
				t.Errorf("a valid request after it: %d %s", response.StatusCode, answer)
			}
			if strings.Contains(c.path, "KEY") {
				asked(goodKey, gateway.RefusedRate, c.status, c.status, c.status, 429)
			}
		})
	}
}

// Each handshake of a WebSocket takes a credit of the address, also one that is refused.
func TestHandshakesCountForTheAddress(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"no handshake", nil, 426},
		{"incomplete", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 400},
		{"forbidden origin", []string{"Connection", "Upgrade", "Upgrade", "websocket", "Origin", "https://elsewhere.example"}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, gateway.Config{
				Networks: []gateway.Network{network("alpha")}, Origins: []string{"https://here.example"},
				Limits: gateway.Limits{Address: limit.Rate{PerSecond: 0.001, Burst: 2}},
			}, 0)
			for n, want := range []int{c.status, c.status, 429} {
				if response, answer := s.ask("GET", "/ws/v3/"+goodKey, "", c.headers...); response.StatusCode != want {
					t.Errorf("handshake %d: %d %s, expected %d", n, response.StatusCode, answer, want)
				}
			}
		})
	}
}
