package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// An answer that does not belong to the attempt is refused before the provider is asked.
func TestAnswersAreRefused(t *testing.T) {
	p := New(Config{Issuer: "http://127.0.0.1:1", Client: "c", Secret: "s"})
	valid := Attempt{State: "state", Until: time.Now().Add(time.Minute).Unix()}
	late := valid
	late.Until = time.Now().Unix()
	for name, c := range map[string]struct {
		attempt Attempt
		answer  url.Values
		want    error
	}{
		"no attempt":     {Attempt{}, url.Values{"state": {""}, "code": {"x"}}, ErrRefused},
		"another state":  {valid, url.Values{"state": {"other"}, "code": {"x"}}, ErrRefused},
		"too late":       {late, url.Values{"state": {"state"}, "code": {"x"}}, ErrRefused},
		"an error":       {valid, url.Values{"state": {"state"}, "error": {"access_denied"}}, ErrRefused},
		"another issuer": {valid, url.Values{"state": {"state"}, "code": {"x"}, "iss": {"http://127.0.0.1:2"}}, ErrRefused},
		"nobody listens": {valid, url.Values{"state": {"state"}, "code": {"x"}}, ErrProvider},
	} {
		if _, err := p.Finish(t.Context(), c.attempt, c.answer); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", name, err, c.want)
		}
	}
}

// While the provider does not answer, nobody waits for it after the browser has gone, and all others
// get the answer together.
func TestWaitingForTheProvider(t *testing.T) {
	asked, hangs := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-hangs
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer server.Close()
	p := New(Config{Issuer: server.URL, Client: "c", Secret: "s"})
	begin := func(ctx context.Context) <-chan error {
		answer := make(chan error, 1)
		go func() {
			_, _, err := p.Begin(ctx, "http://here.test/back")
			answer <- err
		}()
		return answer
	}
	first := begin(t.Context())
	<-asked
	ctx, leave := context.WithCancel(t.Context())
	gone, staying := begin(ctx), begin(t.Context())
	leave()
	select {
	case err := <-gone:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the user who has gone: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a user who has gone waits for the provider")
	}
	close(hangs)
	for _, answer := range []<-chan error{first, staying} {
		if err := <-answer; !errors.Is(err, ErrProvider) {
			t.Errorf("%v, expected %v", err, ErrProvider)
		}
	}
}

// An address counts as verified only if the provider says so, as a boolean or, like some providers, as a
// string.
func TestVerifiedAddress(t *testing.T) {
	for text, want := range map[string]flag{
		`{}`: false, `{"email_verified":true}`: true, `{"email_verified":"true"}`: true, `{"email_verified":false}`: false,
		`{"email_verified":"false"}`: false, `{"email_verified":null}`: false, `{"email_verified":1}`: false, `{"email_verified":"yes"}`: false,
	} {
		var c claims
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.Verified != want {
			t.Errorf("%s: %t, %v, expected %t", text, c.Verified, err, want)
		}
	}
}

// A provider is asked again after a failure, and its answers are bounded.
func TestDiscovery(t *testing.T) {
	var answer func(http.ResponseWriter)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
	defer server.Close()
	p := New(Config{Issuer: server.URL, Client: "c", Secret: "s"})
	answer = func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }
	if _, _, err := p.Begin(t.Context(), "http://here.test/back"); !errors.Is(err, ErrProvider) {
		t.Errorf("a failure: %v", err)
	}
	answer = func(w http.ResponseWriter) {
		_, _ = w.Write([]byte(`{"issuer":"` + server.URL + `","x":"` + strings.Repeat("x", answerBytes) + `"}`))
	}
	if _, _, err := p.Begin(t.Context(), "http://here.test/back"); !errors.Is(err, ErrProvider) {
		t.Errorf("a long answer: %v", err)
	}
	answer = func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"issuer":"` + server.URL + `","authorization_endpoint":"` + server.URL + `/auth","token_endpoint":"` + server.URL + `/token","jwks_uri":"` + server.URL + `/keys"}`))
	}
	if _, to, err := p.Begin(t.Context(), "http://here.test/back"); err != nil || !strings.HasPrefix(to, server.URL+"/auth?") {
		t.Errorf("%s, %v", to, err)
	}
}
