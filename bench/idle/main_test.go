package main

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Each sample is of the time that it names, however short the wait is and however long the connections are read.
func TestObserve(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second / 2, time.Second, 3 * time.Second, 40 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			begun, swept := time.Now(), 0
			samples, err := observe(wait, func() (int64, error) { return int64(time.Since(begun)), nil }, func() error {
				swept++
				time.Sleep(sweepTime)
				return nil
			})
			if err != nil || swept == 0 {
				t.Errorf("waiting %v: %v, connections read %d times", wait, err, swept)
			}
			for _, one := range samples {
				if one.bytes != int64(one.after) {
					t.Errorf("waiting %v: a sample of %v is called one of %v", wait, time.Duration(one.bytes), one.after)
				}
			}
			if n := len(samples); n == 0 || samples[n-1].after != wait {
				t.Errorf("waiting %v: samples %v, expected the last one after the wait", wait, samples)
			}
		})
	}
}

// meeting is a connection whose read ends once all others are read, too.
type meeting struct {
	net.Conn
	all *sync.WaitGroup
	end error
}

func (meeting) SetReadDeadline(time.Time) error { return nil }

func (m meeting) Read([]byte) (int, error) {
	m.all.Done()
	met := make(chan struct{})
	go func() { m.all.Wait(); close(met) }()
	select {
	case <-met:
		return 0, m.end
	case <-time.After(30 * time.Second):
		return 0, errors.New("read while the others were not")
	}
}

// All connections are read at once. One that is closed is named.
func TestStillOpen(t *testing.T) {
	for _, test := range []struct {
		end  error // of the second connection
		want string
	}{
		{os.ErrDeadlineExceeded, ""},
		{io.EOF, "connection 2 of 3: it is closed"},
	} {
		var all sync.WaitGroup
		all.Add(3)
		open := meeting{all: &all, end: os.ErrDeadlineExceeded}
		err := stillOpen([]net.Conn{open, meeting{all: &all, end: test.end}, open}, time.Minute)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("a read that ends with %v: %v, want %q", test.end, err, test.want)
		}
	}
}

// Messages that have arrived do not make a connection a closed one, and a connection that the service closes is found.
func TestStillOpenOverTCP(t *testing.T) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	var clients, service []net.Conn
	for range 2 {
		client, err := net.Dial("tcp", at.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		conn, err := at.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte{0x89, 0}); err != nil { // a ping
			t.Fatal(err)
		}
		clients, service = append(clients, client), append(service, conn)
	}
	for range 2 {
		if err := stillOpen(clients, time.Second); err != nil {
			t.Errorf("open: %v", err)
		}
	}
	_ = service[1].Close()
	if err := stillOpen(clients, time.Second); err == nil || !strings.HasPrefix(err.Error(), "connection 2 of 2: it is closed") {
		t.Errorf("the second one is closed: %v", err)
	}
}
