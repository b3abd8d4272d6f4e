package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"ashlar/account"
	"ashlar/account/oidc"
	"ashlar/app/store"
)

// OIDC is an OpenID Connect provider with which users sign in.
type OIDC struct {
	Issuer     string   `yaml:"issuer"` // URL; empty: users sign in with passwords only
	Client     string   `yaml:"client"`
	SecretFile string   `yaml:"secret_file"`
	Name       string   `yaml:"name"`
	Create     bool     `yaml:"create"`
	Domains    []string `yaml:"domains"`
}

// oidcSecret names the environment variable with the client's secret.
const oidcSecret = "ASHLAR_OIDC_SECRET"

func (o *OIDC) check() error {
	if o.Issuer == "" {
		if o.Client != "" || o.SecretFile != "" || o.Name != "" || o.Create || len(o.Domains) > 0 {
			return errors.New("issuer is empty (want the provider's URL, such as https://id.example.org)")
		}
		return nil
	}
	u, err := url.Parse(o.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLocal(u.Hostname())) || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("invalid issuer %q (want a URL with https, such as https://id.example.org)", o.Issuer)
	}
	if o.Client == "" {
		return errors.New("client is empty (want the ID that the provider gave this service)")
	}
	for _, domain := range o.Domains {
		if domain == "" || domain != strings.ToLower(domain) || strings.ContainsAny(domain, "@ /") {
			return fmt.Errorf("invalid domain %q (want the part of an e-mail address after the @, in lower case)", domain)
		}
	}
	return nil
}

// isLocal reports whether a host is this machine, for which providers need no TLS.
func isLocal(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// checkFiles returns what is wrong with the file that Open reads.
func (o *OIDC) checkFiles() error {
	_, err := store.ReadSecret("secret_file", o.SecretFile)
	return err
}

// Policy says who gets an account by signing in with the provider.
func (o *OIDC) Policy() account.Provided {
	return account.Provided{Create: o.Create, Domains: o.Domains}
}

// Open returns the provider, nil if none is configured. It sends no request.
func (o *OIDC) Open() (*oidc.Provider, error) {
	if o.Issuer == "" {
		return nil, nil
	}
	secret, err := store.ReadSecret("accounts.oidc.secret_file", o.SecretFile)
	if err != nil {
		return nil, err
	}
	if secret = cmp.Or(secret, os.Getenv(oidcSecret)); secret == "" {
		return nil, fmt.Errorf("accounts.oidc: no secret for client %q: set secret_file or the environment variable %s", o.Client, oidcSecret)
	}
	u, err := url.Parse(o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("accounts.oidc.issuer: %w", err)
	}
	return oidc.New(oidc.Config{Issuer: o.Issuer, Client: o.Client, Secret: secret, Name: cmp.Or(o.Name, u.Host)}), nil
}
