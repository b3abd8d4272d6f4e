package cassandra_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/kv/cassandra"
	"ashlar/kv/cassandra/cassandratest"
)

// certificate is a certificate with its key.
type certificate struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

// issue makes a certificate that an authority signs; nil: a new authority.
func issue(t *testing.T, by *certificate, name string, addresses ...net.IP) *certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: addresses,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
	}
	if by == nil {
		by = &certificate{c, key}
		c.KeyUsage = x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.Certificate, &key.PublicKey, by.key)
	if err == nil {
		c, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &certificate{c, key}
}

// pem returns the key and the certificate, as Cassandra reads them.
func (c *certificate) pem(t *testing.T) []byte {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, block := range []*pem.Block{{Type: "PRIVATE KEY", Bytes: key}, {Type: "CERTIFICATE", Bytes: c.Raw}} {
		if err := pem.Encode(&out, block); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// TestTLS connects to a node that demands encryption and a client's certificate. What is
// wrong with a certificate is one clear line.
func TestTLS(t *testing.T) {
	authority, stranger := issue(t, nil, "authority"), issue(t, nil, "another authority")
	address := cassandratest.OneAddress()
	folder := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
	node, err := cassandratest.StartOne(cassandratest.Jars(t), "client_encryption_options:",
		"  enabled: true", "  require_client_auth: true",
		"  ssl_context_factory: {class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}",
		fmt.Sprintf("  keystore: %q", file("node.pem", issue(t, authority, "node", net.ParseIP(address)).pem(t))),
		fmt.Sprintf("  truststore: %q", file("trusted.pem", trusted)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := func(trusts, identity *certificate) cassandra.Config {
		encryption := &tls.Config{RootCAs: x509.NewCertPool()}
		encryption.RootCAs.AddCert(trusts.Certificate)
		if identity != nil {
			encryption.Certificates = []tls.Certificate{{Certificate: [][]byte{identity.Raw}, PrivateKey: identity.key}}
		}
		return cassandra.Config{Hosts: node.Hosts, Keyspace: "encrypted", Replication: 1, TLS: encryption}
	}
	client := issue(t, authority, "client")
	s := open(t, connectToNew(t, config(authority, client)), "store", cassandra.Options{})
	defer s.Close()
	put(t, s, versions, "p", 1, "one")
	if value, err := s.Get(t.Context(), versions, []byte("p"), 1, nil); err != nil || string(value) != "one" {
		t.Errorf("over an encrypted connection: %q, %v", value, err)
	}
	for what, c := range map[string]struct {
		cassandra.Config
		want string
	}{
		"a node of another authority":   {config(stranger, client), "certificate signed by unknown authority"},
		"no certificate of the client":  {config(authority, nil), "certificate"},
		"a client of another authority": {config(authority, issue(t, stranger, "client")), "certificate"},
		"no encryption":                 {cassandra.Config{Hosts: node.Hosts, Keyspace: "encrypted"}, kv.ErrUnavailable.Error()},
	} {
		_, err := cassandra.Connect(t.Context(), c.Config, true)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, expected one line with %q", what, err, c.want)
		}
	}
}

// TestLateRefusal has a node refuse a client's certificate before the client writes its
// first message, which fails then. The reason is the node's alert.
func TestLateRefusal(t *testing.T) {
	authority := issue(t, nil, "authority")
	identity := issue(t, authority, "node", net.IPv4(127, 0, 0, 1))
	trusted := x509.NewCertPool()
	trusted.AddCert(authority.Certificate)
	node, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
		Certificates: []tls.Certificate{{Certificate: [][]byte{identity.Raw}, PrivateKey: identity.key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		var once sync.Once
		for {
			conn, err := node.Accept()
			if err != nil {
				return
			}
			if err := conn.(*tls.Conn).HandshakeContext(t.Context()); err != nil {
				once.Do(func() { close(refused) })
			}
			conn.Close()
		}
	}()
	defer func() { node.Close(); <-stopped }()

	config := cassandra.Config{Hosts: []string{"127.0.0.1"}, Port: node.Addr().(*net.TCPAddr).Port, Keyspace: "encrypted", TLS: &tls.Config{RootCAs: trusted}}
	config.Connect(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &lateWriter{Conn: conn, refused: refused, failed: make(chan struct{})}, err
	})
	_, err = cassandra.Connect(t.Context(), config, true)
	if want := "a node refused the encrypted connection: remote error: tls: certificate required"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, expected %q at the end", err, want)
	}
}

// lateWriter is a client's connection whose first write after the handshake is made when
// the node has refused it, and fails. Nothing is read between the handshake and that write.
type lateWriter struct {
	net.Conn
	refused <-chan struct{}
	writes  atomic.Int32  // two belong to the handshake: the hello, and the certificate with what ends the handshake
	failed  chan struct{} // closed when the third write has failed
}

func (c *lateWriter) Write(b []byte) (int, error) {
	switch n := c.writes.Add(1); {
	case n <= 2:
		return c.Conn.Write(b)
	case n == 3:
		<-c.refused
		defer close(c.failed)
	}
	return 0, syscall.EPIPE
}

func (c *lateWriter) Read(b []byte) (int, error) {
	if c.writes.Load() >= 2 {
		<-c.failed
	}
	return c.Conn.Read(b)
}
