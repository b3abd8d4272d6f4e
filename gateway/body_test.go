package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/gateway"

	"github.com/klauspost/compress/gzip"
)

// padded returns a call of exactly n bytes.
func padded(n int) string {
	request := call("test_name")
	return request + strings.Repeat(" ", n-len(request))
}

func zipped(t *testing.T, text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBodyLimit(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{BodyBytes: 100_000}}, 0)
	cases := []struct {
		name, body, encoding string
		status               int
	}{
		{"at the limit", padded(100_000), "", 200},
		{"one byte over", padded(100_001), "", 413},
		{"compressed", zipped(t, padded(1000)), "gzip", 200},
		{"compressed, at the limit", zipped(t, padded(100_000)), "GZIP", 200},
		{"compressed, one byte over", zipped(t, padded(100_001)), "gzip", 413},
		{"a bomb", zipped(t, strings.Repeat(" ", 50_000_000)), "gzip", 413},
		{"named identity", padded(1000), "identity", 200},
		{"not what it says", padded(1000), "gzip", 400},
		{"cut off", zipped(t, padded(1000))[:50], "gzip", 400},
		{"unknown encoding", padded(1000), "br", 415},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			response, answer := s.post(c.body, "Content-Encoding", c.encoding)
			if response.StatusCode != c.status {
				t.Errorf("%d %s, expected %d", response.StatusCode, answer, c.status)
			}
			if ok := strings.Contains(answer, `"result":"alpha"`); ok != (c.status == 200) {
				t.Errorf("answer %s", answer)
			}
		})
	}
	t.Run("of unknown length", func(t *testing.T) {
		for n, status := range map[int]int{100_000: 200, 100_001: 413} {
			body := struct{ io.Reader }{strings.NewReader(padded(n))}
			response, err := client.Post(s.url+"/v3/"+goodKey, "application/json", body)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				t.Error(err)
			}
			if response.Body.Close(); response.StatusCode != status {
				t.Errorf("%d bytes: %d, expected %d", n, response.StatusCode, status)
			}
		}
	})
}

func TestGzipAnswers(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	_, plain := s.post(call("test_large"))
	for accept, want := range map[string]bool{
		"gzip": true, "deflate, GZIP;q=0.5": true, "br;q=1.0, gzip; q=1.0": true,
		"gzip;q=0": false, "gzip; q=0.000": false, "br": false, "": false, "*": false, "gzipped": false,
	} {
		response, answer := s.post(call("test_large"), "Accept-Encoding", accept)
		if response.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: Vary is %q", accept, response.Header.Get("Vary"))
		}
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: compressed %t, expected %t", accept, got, want)
			continue
		}
		if want {
			if response.ContentLength != int64(len(answer)) || len(answer) >= len(plain) {
				t.Errorf("Content-Length %d for %d bytes, plain %d", response.ContentLength, len(answer), len(plain))
			}
			z, err := gzip.NewReader(strings.NewReader(answer))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			answer = string(raw)
		}
		if answer != plain {
			t.Errorf("Accept-Encoding %q: another answer than the plain one", accept)
		}
	}
	if response, answer := s.post(call("test_name"), "Accept-Encoding", "gzip"); response.Header.Get("Content-Encoding") != "" {
		t.Errorf("a short answer is compressed: %q", answer)
	}
}

// TestAnswerLengths requests answers whose lengths are close to the sizes of the server's
// buffers, some of them compressed, over one connection with pipelining.
func TestAnswerLengths(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, time.Second)
	lengths := []int{0, 1, 900, 1100, 2000, 2100, 8000, 8192, 10_000, 65_536, 300_000}
	for n := 3700; n < 4200; n += 7 {
		lengths = append(lengths, n)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	params := func(n int) string { return `["` + strings.Repeat("7", n) + `"]` }
	go func() {
		for i, n := range lengths {
			body := `{"jsonrpc":"2.0","id":1,"method":"test_echo","params":` + params(n) + `}`
			encoding := ""
			if i%5 == 4 {
				encoding = "Accept-Encoding: gzip\r\n"
			}
			fmt.Fprintf(conn, "POST /alpha/v3/%s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", goodKey, encoding, len(body), body)
		}
	}()
	answers := bufio.NewReader(conn)
	for i, n := range lengths {
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("answer %d, of %d bytes: %v", i, n, err)
		}
		body := io.Reader(response.Body)
		if response.Header.Get("Content-Encoding") == "gzip" {
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := io.ReadAll(body)
		if want := `{"jsonrpc":"2.0","id":1,"result":` + params(n) + `}`; err != nil || string(answer) != want {
			t.Fatalf("answer %d, of %d bytes: %d bytes, %v", i, n, len(answer), err)
		}
		response.Body.Close()
	}
}

// The time that a client takes to send a request does not count as time of its methods.
func TestRequestTimeBeginsAfterTheBody(t *testing.T) {
	synctest.Test(t, testRequestTimeBeginsAfterTheBody)
}

func testRequestTimeBeginsAfterTheBody(t *testing.T) {
	line, end := servePipe(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{RequestTime: 100 * time.Millisecond}})
	defer end()
	client := &http.Client{Transport: &http.Transport{DialContext: line.DialContext, DisableKeepAlives: true}}
	for encoding, text := range map[string]string{"identity": call("test_name"), "gzip": zipped(t, call("test_name"))} {
		body, send := io.Pipe()
		go func() {
			time.Sleep(200 * time.Millisecond)
			_, _ = io.WriteString(send, text)
			_ = send.Close()
		}()
		request, err := http.NewRequest("POST", "http://pipe/v3/"+goodKey, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {encoding}}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if answer, err := io.ReadAll(response.Body); err != nil || string(answer) != `{"jsonrpc":"2.0","id":1,"result":"alpha"}` {
			t.Errorf("%s: got %s, error %v", encoding, answer, err)
		}
	}
}
