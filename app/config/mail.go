package config

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"ashlar/account/mail"
	"ashlar/app/store"
)

// Mail is the mail server with which e-mail addresses are verified.
type Mail struct {
	Server       string   `yaml:"server"` // host:port; empty: addresses are not verified
	TLS          mail.TLS `yaml:"tls"`
	CA           string   `yaml:"ca"` // PEM file; empty: the system's authorities
	User         string   `yaml:"user"`
	PasswordFile string   `yaml:"password_file"`
	From         string   `yaml:"from"`
	Link         string   `yaml:"link"` // URL of the dashboard
}

// mailPassword names the environment variable with the mail server's password.
const mailPassword = "ASHLAR_MAIL_PASSWORD"

func (m *Mail) check() error {
	if m.Server == "" {
		if *m != (Mail{}) {
			return errors.New("server is empty (want a host and a port, such as smtp.example.org:587)")
		}
		return nil
	}
	if m.User == "" && m.PasswordFile != "" {
		return errors.New("user is empty, but password_file is set")
	}
	_, err := mail.New(mail.Config{Server: m.Server, TLS: m.TLS, From: m.From, Link: m.Link})
	return err
}

// checkMail is the check of the mail server. If its link would be the dashboard's URL, and that is wrong, the
// error is about the URL alone.
func (c *Config) checkMail() error {
	m := c.Accounts.Mail
	if m.Server != "" && m.Link == "" && c.Dashboard.checkURL() != nil {
		m.Link = "https://dash.example.org"
	}
	return m.check()
}

// Open returns the sender of letters, nil if no server is configured.
func (m *Mail) Open() (*mail.Sender, error) {
	if m.Server == "" {
		return nil, nil
	}
	roots, password, err := m.files()
	if err != nil {
		return nil, fmt.Errorf("accounts.mail.%w", err)
	}
	c := mail.Config{Server: m.Server, TLS: m.TLS, User: m.User, From: m.From, Link: m.Link, Roots: roots, Log: slog.Default()}
	if m.User != "" {
		if c.Password = cmp.Or(password, os.Getenv(mailPassword)); c.Password == "" {
			return nil, fmt.Errorf("accounts.mail: no password for user %q: set password_file or the environment variable %s", m.User, mailPassword)
		}
	}
	s, err := mail.New(c)
	if err != nil {
		return nil, fmt.Errorf("accounts.mail: %w", err)
	}
	return s, nil
}

// checkFiles returns what is wrong with the files that Open reads.
func (m *Mail) checkFiles() error {
	_, _, err := m.files()
	return err
}

// files returns the authorities of the server's certificate, nil for the system's, and the
// password, empty without a file. An error begins with the name of the entry.
func (m *Mail) files() (roots *x509.CertPool, password string, err error) {
	if m.CA != "" {
		text, err := os.ReadFile(m.CA)
		if err != nil {
			return nil, "", fmt.Errorf("ca: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, "", fmt.Errorf("ca: no certificate in %s: expected PEM", m.CA)
		}
	}
	password, err = store.ReadSecret("password_file", m.PasswordFile)
	return roots, password, err
}
