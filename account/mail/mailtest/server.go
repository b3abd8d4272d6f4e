// Package mailtest serves a real SMTP server for tests of letters: it demands TLS and
// authentication, and keeps what it receives.
package mailtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	letters "ashlar/account/mail"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// User and Password are what the server accepts.
const (
	User     = "ashlar"
	Password = "a secret of the mail server"
)

// patience is how long a letter is waited for, and a client in the middle of one. It is longer than several attempts of a sender
// take, each of which has 30 seconds, and the pauses between them.
const patience = 5 * time.Minute

// Letter is a received letter.
type Letter struct {
	From, To string // of the envelope
	Header   mail.Header
	Text     string
}

// links matches the links of letters.
var links = regexp.MustCompile(`(?m)^    (https?://\S+)$`)

// Link returns the link in a letter, or an empty string.
func (l *Letter) Link() string {
	found := links.FindStringSubmatch(l.Text)
	if found == nil {
		return ""
	}
	return found[1]
}

// Server is a running mail server.
type Server struct {
	Address string         // host:port
	Roots   *x509.CertPool // which verify its certificate
	PEM     []byte         // the same, as a file has it

	mu       sync.Mutex
	received []Letter // guarded by mu
	taken    int      // guarded by mu: letters that Next has returned
	refuse   error    // guarded by mu: answers to letters
	unknown  string   // guarded by mu: an address that does not exist
}

// New starts a server on 127.0.0.1 that ends with the test. implicit: it speaks TLS from the
// first byte.
func New(t testing.TB, implicit bool) *Server {
	t.Helper()
	certificate, roots, file := newCertificate(t)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: listener.Addr().String(), Roots: roots, PEM: file}
	server := smtp.NewServer(s)
	server.Domain, server.TLSConfig, server.ReadTimeout, server.WriteTimeout = "mail.test", config, patience, patience
	if implicit {
		listener = tls.NewListener(listener, config)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		_ = listener.Close() // which Close does not know of before Serve
		if err := <-served; err != nil && !errors.Is(err, smtp.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s
}

// Config returns the configuration of a sender that uses the server. link is the URL of the
// dashboard.
func (s *Server) Config(link string) letters.Config {
	return letters.Config{Server: s.Address, Roots: s.Roots, User: User, Password: Password, From: "Ashlar <noreply@mail.test>", Link: link}
}

// Refuse lets the server answer letters with an error from now on; nil: it accepts them.
func (s *Server) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// Unknown lets the server refuse letters to an address as one that does not exist.
func (s *Server) Unknown(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = address
}

// Next returns the next letter, for which it waits.
func (s *Server) Next(t testing.TB) Letter {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		if s.taken < len(s.received) {
			s.taken++
			defer s.mu.Unlock()
			return s.received[s.taken-1]
		}
		s.mu.Unlock()
	}
	t.Fatal("no letter has arrived")
	return Letter{}
}

// Received returns how many letters have arrived.
func (s *Server) Received() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.received)
}

// NewSession implements smtp.Backend.
func (s *Server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{server: s, conn: c}, nil
}

// session is one connection.
type session struct {
	server *Server
	conn   *smtp.Conn
	known  bool // the client is authenticated
	letter Letter
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if _, encrypted := s.conn.TLSConnectionState(); !encrypted || user != User || password != Password {
			return smtp.ErrAuthFailed
		}
		s.known = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.known {
		return smtp.ErrAuthRequired
	}
	s.letter.From = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if to == s.server.unknown {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.letter.To = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.refuse != nil {
		return s.server.refuse
	}
	s.letter.Header, s.letter.Text = m.Header, strings.ReplaceAll(string(text), "\r\n", "\n")
	s.server.received = append(s.server.received, s.letter)
	return nil
}

func (s *session) Reset()        { s.letter = Letter{} }
func (s *session) Logout() error { return nil }

// newCertificate returns a certificate for 127.0.0.1 that signs itself.
func newCertificate(t testing.TB) (tls.Certificate, *x509.CertPool, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(file)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots, file
}
