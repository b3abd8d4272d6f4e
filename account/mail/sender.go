// Package mail sends the letters of accounts by SMTP, such as those that verify e-mail
// addresses.
//
// A [Sender] queues letters and sends them in the background, so that requests do not wait
// for a mail server. A letter that the server refuses for the moment is sent again later. At
// most maxWaiting letters wait; they are lost when the process ends, and the user asks for
// another.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ashlar/account"

	gomail "github.com/wneessen/go-mail"
)

const (
	maxWaiting = 1000
	sendTime   = 30 * time.Second // for one attempt
	attempts   = 5
	firstPause = 10 * time.Second // before the second attempt; then twice as long each time
	maxLogged  = 300              // bytes of a server's answer that are logged
)

// TLS says how the connection to the mail server is encrypted.
type TLS string

// The kinds of encryption.
const (
	StartTLS TLS = "starttls" // required, after a greeting in plain text
	Implicit TLS = "implicit" // from the first byte
	None     TLS = "none"     // only for a server on this machine
)

// Config configures a Sender.
type Config struct {
	Server   string         // host:port
	TLS      TLS            // empty: Implicit for port 465, else StartTLS
	Roots    *x509.CertPool // nil: the system's
	User     string         // empty: no authentication
	Password string
	From     string // such as Ashlar <noreply@example.org>
	Link     string // URL of the dashboard, which links in letters begin with
	Log      *slog.Logger
}

// Sender sends letters. It is safe for concurrent use.
type Sender struct {
	config Config
	client *gomail.Client
	link   *url.URL
	queue  chan job

	mu      sync.Mutex
	problem error     // guarded by mu: why the last attempt failed; nil if it did not
	since   time.Time // guarded by mu: of problem
	sent    uint64    // guarded by mu
	failed  uint64    // guarded by mu: letters that were given up
}

// job is a letter to be sent.
type job struct {
	compose func(context.Context) (*account.Letter, error) // nil once letter is set
	letter  *account.Letter
	tried   int
	at      time.Time // of the next attempt
}

var _ account.Mailer = (*Sender)(nil)

// New returns a sender, or an error that names what is wrong in the configuration.
func New(c Config) (*Sender, error) {
	host, port, err := net.SplitHostPort(c.Server)
	number, err2 := strconv.ParseUint(port, 10, 16)
	if err := errors.Join(err, err2); err != nil || host == "" {
		return nil, fmt.Errorf("invalid server %q (want a host and a port, such as smtp.example.org:587)", c.Server)
	}
	if _, err := mail.ParseAddress(c.From); err != nil {
		return nil, fmt.Errorf("invalid sender %q (want an e-mail address, such as Ashlar <noreply@example.org>)", c.From)
	}
	link, err := url.Parse(c.Link)
	if err != nil || link.Scheme != "https" && link.Scheme != "http" || link.Host == "" || link.RawQuery != "" || strings.Trim(link.Path, "/") != "" {
		return nil, fmt.Errorf("invalid link %q (want the URL of the dashboard, such as https://rpc.example.org)", c.Link)
	}
	options := []gomail.Option{gomail.WithPort(int(number)), gomail.WithTimeout(sendTime), gomail.WithTLSConfig(&tls.Config{ServerName: host, RootCAs: c.Roots, MinVersion: tls.VersionTLS12})}
	encryption, err := c.encryption(host, port)
	if err != nil {
		return nil, err
	}
	options = append(options, encryption)
	if c.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(c.User), gomail.WithPassword(c.Password))
	}
	client, err := gomail.NewClient(host, options...)
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Sender{config: c, client: client, link: link, queue: make(chan job, maxWaiting)}, nil
}

// encryption returns the library's option for c.TLS.
func (c *Config) encryption(host, port string) (gomail.Option, error) {
	kind := c.TLS
	if kind == "" && port == "465" {
		kind = Implicit
	}
	switch kind {
	case "", StartTLS:
		return gomail.WithTLSPolicy(gomail.TLSMandatory), nil
	case Implicit:
		return gomail.WithSSL(), nil
	case None:
		if address, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !address.IsLoopback()) {
			return nil, fmt.Errorf("no encryption to %s: expected a server on this machine", host)
		}
		return gomail.WithTLSPolicy(gomail.NoTLS), nil
	}
	return nil, fmt.Errorf("unknown encryption %q (want %s, %s or %s)", string(kind), StartTLS, Implicit, None)
}

// Queue implements account.Mailer.
func (s *Sender) Queue(compose func(context.Context) (*account.Letter, error)) error {
	select {
	case s.queue <- job{compose: compose}:
		return nil
	default:
		return account.ErrLetters
	}
}

// Problem returns why the last attempt to send a letter failed and since when attempts
// fail; nil if it did not fail, or only because the letter's address is wrong.
func (s *Sender) Problem() (since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.problem
}

// Counts returns how many letters were sent, and how many were given up.
func (s *Sender) Counts() (sent, failed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, s.failed
}

// Run sends letters until ctx is done.
func (s *Sender) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var later []job // to be sent again
	for {
		var due []job
		select {
		case <-ctx.Done():
			return nil
		case j := <-s.queue:
			due = append(due, j)
		case now := <-tick.C:
			var wait []job
			for _, j := range later {
				if now.Before(j.at) {
					wait = append(wait, j)
				} else {
					due = append(due, j)
				}
			}
			later = wait
		}
		for _, j := range due {
			if again, ok := s.try(ctx, j); ok && len(later) < maxWaiting {
				later = append(later, again)
			}
		}
	}
}

// try composes and sends a letter. It returns true if the letter must be sent again.
func (s *Sender) try(ctx context.Context, j job) (again job, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if j.compose != nil {
		letter, err := j.compose(ctx)
		if err != nil {
			s.gaveUp(fmt.Errorf("compose: %w", err))
		}
		if err != nil || letter == nil {
			return j, false
		}
		j.compose, j.letter = nil, letter
	}
	err := s.send(ctx, j.letter)
	if err == nil {
		s.succeeded()
		return j, false
	}
	j.tried++
	var refused *gomail.SendError
	if final := errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500; final || j.tried >= attempts {
		s.gaveUp(err)
		return j, false
	}
	s.failing(err)
	j.at = time.Now().Add(firstPause << (j.tried - 1))
	return j, true
}

func (s *Sender) succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	s.problem, s.since = nil, time.Time{}
}

// refusesAddress reports whether a mail server works, but knows no mailbox or domain of the letter's address. Anybody can
// type an address that does not exist.
func refusesAddress(err error) bool {
	var refused *gomail.SendError
	if !errors.As(err, &refused) || refused.Reason != gomail.ErrSMTPRcptTo {
		return false
	}
	_, detail, _ := strings.Cut(refused.EnhancedStatusCode(), ".")               // of RFC 3463
	return slices.Contains([]string{"1.1", "1.2", "1.3", "1.10", "2.1"}, detail) // not those of the sender's address
}

// failing records a failed attempt, unless only the letter's address is wrong. It logs only the first of several in a row.
func (s *Sender) failing(err error) {
	if refusesAddress(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == nil {
		s.since = time.Now()
		s.config.Log.Error("cannot send e-mails: trying again", "server", s.config.Server, "error", logged(err))
	}
	s.problem = err
}

func (s *Sender) gaveUp(err error) {
	s.failing(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed++
	s.config.Log.Warn("an e-mail was dropped", "error", logged(err))
}

// logged returns an error's text for the log. Servers repeat addresses of users in it, which
// is needed to find out about them; its length is limited.
func logged(err error) string {
	text := err.Error()
	return text[:min(len(text), maxLogged)]
}

// send makes one attempt to send a letter.
func (s *Sender) send(ctx context.Context, l *account.Letter) error {
	subject, text, err := s.write(l)
	if err != nil {
		return err
	}
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.Subject(subject)
	m.SetBodyString(gomail.TypeTextPlain, text)
	m.SetDate()
	m.SetMessageID()
	m.SetGenHeader("Auto-Submitted", "auto-generated") // no automatic answers
	if err := errors.Join(m.From(s.config.From), m.To(l.To)); err != nil {
		return err
	}
	return s.client.DialAndSendWithContext(ctx, m)
}
