// Package oidc signs users in with an OpenID Connect provider: the authorization code flow with
// PKCE. The provider is asked for its endpoints when they are first needed, and again until it
// answers, so that one that is down keeps no server from starting.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
)

const (
	// answerTime bounds each request to the provider, answerBytes its answer.
	answerTime  = 10 * time.Second
	answerBytes = 1 << 20
	// AttemptTime is how long a user may take to sign in at the provider.
	AttemptTime = 15 * time.Minute
)

// Kinds of errors. Errors that wrap them give the details.
var (
	// ErrProvider means that the provider does not answer, or not as it should.
	ErrProvider = errors.New("the sign-in provider does not answer as expected")
	// ErrRefused means that the user did not sign in at the provider, or too late.
	ErrRefused = errors.New("the sign-in provider did not confirm who you are")
)

// Config describes this service to a provider.
type Config struct {
	Issuer string // URL
	Client string // the service's ID at the provider
	Secret string
	Name   string // of the provider, as users know it
}

// Provider is an OpenID Connect provider. It is safe for concurrent use.
type Provider struct {
	config Config
	client *http.Client

	asking singleflight.Group // the question for found: all who wait for it get the one answer
	found  atomic.Pointer[oidc.Provider]
}

// New returns a provider. It sends no request.
func New(c Config) *Provider {
	return &Provider{config: c, client: &http.Client{Timeout: answerTime, Transport: bounded{}}}
}

// Name returns the provider's name for users.
func (p *Provider) Name() string { return p.config.Name }

// Issuer returns the provider's URL, within which subjects are unique.
func (p *Provider) Issuer() string { return p.config.Issuer }

// bounded is a transport that bounds the size of answers.
type bounded struct{}

func (bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, answerBytes)
	return response, nil
}

// discovered returns the provider's endpoints and keys.
func (p *Provider) discovered(ctx context.Context) (*oidc.Provider, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	answer := p.asking.DoChan("", func() (any, error) {
		// The context is kept, to read the provider's keys later: it must not end with the request.
		found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.config.Issuer)
		if err == nil {
			p.found.Store(found)
		}
		return found, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answer:
		if a.Err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrProvider, p.config.Issuer, a.Err)
		}
		return a.Val.(*oidc.Provider), nil
	}
}

// Attempt is a sign-in that has begun. Its members are secrets: keep it where clients cannot
// read it.
type Attempt struct {
	State    string
	Nonce    string
	Verifier string
	Redirect string // the service's URL to which the provider sends the user
	Until    int64  // Unix seconds
}

// Begin begins a sign-in. The user continues at the URL.
func (p *Provider) Begin(ctx context.Context, redirect string) (a Attempt, to string, err error) {
	found, err := p.discovered(ctx)
	if err != nil {
		return Attempt{}, "", err
	}
	a = Attempt{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), redirect, time.Now().Add(AttemptTime).Unix()}
	return a, p.oauth(found, redirect).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

func (p *Provider) oauth(found *oidc.Provider, redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.config.Client, ClientSecret: p.config.Secret, Endpoint: found.Endpoint(), RedirectURL: redirect,
		Scopes: []string{oidc.ScopeOpenID, "email"},
	}
}

// Identity is who a user is at a provider.
type Identity struct {
	Issuer   string
	Subject  string // unique within the issuer, and never given to another user
	Email    string // may be empty
	Verified bool   // the provider has verified that the user receives mail at Email
}

// claims are the members of ID tokens and user information that are used.
type claims struct {
	Email    string `json:"email"`
	Verified flag   `json:"email_verified"`
}

// flag is a boolean that some providers write as a string. Anything but true is false.
type flag bool

// UnmarshalJSON implements json.Unmarshaler.
func (f *flag) UnmarshalJSON(raw []byte) error {
	*f = string(raw) == "true" || string(raw) == `"true"`
	return nil
}

// Matches reports whether a query with which the provider sent the user back is the answer to the attempt.
func (a Attempt) Matches(answer url.Values) bool {
	return a.State != "" && subtle.ConstantTimeCompare([]byte(a.State), []byte(answer.Get("state"))) == 1
}

// Finish finishes a sign-in with the query with which the provider sent the user back.
func (p *Provider) Finish(ctx context.Context, a Attempt, answer url.Values) (Identity, error) {
	switch {
	case !a.Matches(answer):
		return Identity{}, fmt.Errorf("%w: the answer belongs to no sign-in of this browser", ErrRefused)
	case time.Now().Unix() >= a.Until:
		return Identity{}, fmt.Errorf("%w: it took longer than %v", ErrRefused, AttemptTime)
	case answer.Get("error") != "":
		return Identity{}, fmt.Errorf("%w: %.100q", ErrRefused, answer.Get("error"))
	case answer.Has("iss") && answer.Get("iss") != p.config.Issuer: // RFC 9207
		return Identity{}, fmt.Errorf("%w: the answer is of another issuer", ErrRefused)
	}
	found, err := p.discovered(ctx)
	if err != nil {
		return Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	tokens, err := p.oauth(found, a.Redirect).Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return Identity{}, fmt.Errorf("%w: exchange the code: %w", ErrProvider, err)
	}
	return p.identity(ctx, found, tokens, a.Nonce)
}

// identity checks the ID token, and reads the e-mail address from it or from the provider's
// user information.
func (p *Provider) identity(ctx context.Context, found *oidc.Provider, tokens *oauth2.Token, nonce string) (Identity, error) {
	raw, _ := tokens.Extra("id_token").(string)
	token, err := found.VerifierContext(ctx, &oidc.Config{ClientID: p.config.Client}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: ID token: %w", ErrProvider, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1 {
		return Identity{}, fmt.Errorf("%w: the ID token is of another sign-in", ErrRefused)
	}
	var c claims
	if err := token.Claims(&c); err != nil {
		return Identity{}, fmt.Errorf("%w: ID token: %w", ErrProvider, err)
	}
	if c.Email == "" && found.UserInfoEndpoint() != "" {
		info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		if err != nil {
			return Identity{}, fmt.Errorf("%w: user information: %w", ErrProvider, err)
		}
		if info.Subject != token.Subject {
			return Identity{}, fmt.Errorf("%w: the user information is of another user", ErrProvider)
		}
		c = claims{info.Email, flag(info.EmailVerified)}
	}
	return Identity{token.Issuer, token.Subject, c.Email, bool(c.Verified)}, nil
}
