package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"ashlar/account/mail"
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

// Open returns the sender of letters, nil if no server is configured.
func (m *Mail) Open() (*mail.Sender, error) {
	if m.Server == "" {
		return nil, nil
	}
	c := mail.Config{Server: m.Server, TLS: m.TLS, User: m.User, From: m.From, Link: m.Link, Log: slog.Default()}
	if m.CA != "" {
		text, err := os.ReadFile(m.CA)
		if err != nil {
			return nil, fmt.Errorf("accounts.mail.ca: %w", err)
		}
		c.Roots = x509.NewCertPool()
		if !c.Roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("accounts.mail.ca: no certificate in %s: expected PEM", m.CA)
		}
	}
	if m.User != "" {
		c.Password = os.Getenv(mailPassword)
		if m.PasswordFile != "" {
			text, err := os.ReadFile(m.PasswordFile)
			if err != nil {
				return nil, fmt.Errorf("accounts.mail.password_file: %w", err)
			}
			c.Password = strings.TrimRight(string(text), "\r\n")
		}
		if c.Password == "" {
			return nil, fmt.Errorf("accounts.mail: no password for user %q: set password_file or the environment variable %s", m.User, mailPassword)
		}
	}
	s, err := mail.New(c)
	if err != nil {
		return nil, fmt.Errorf("accounts.mail: %w", err)
	}
	return s, nil
}
