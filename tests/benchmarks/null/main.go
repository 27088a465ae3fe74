// The null scheduler: posts the bindings of a precomputed list as fast as the API server takes them, and nothing else.
//
// It decides nothing, watches nothing and writes no events, so its rate is the ceiling for any scheduler on the same
// machine. Standard library only. Usage:
//
//	null -server https://127.0.0.1:6443 -ca ca.crt -cert client.crt -key client.key -list FILE [-workers 64]
//
// FILE has one line a pod: namespace, pod and node, separated by spaces. Exit code 1 if any binding was refused.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	server := flag.String("server", "", "URL of the API server")
	ca := flag.String("ca", "", "file with the server's CA")
	cert := flag.String("cert", "", "file with the client certificate")
	key := flag.String("key", "", "file with the client key")
	list := flag.String("list", "", "file with one line a pod: namespace pod node")
	workers := flag.Int("workers", 64, "requests in flight")
	flag.Parse()

	lines, err := readLines(*list)
	if err != nil {
		log.Fatal(err)
	}
	client, err := newClient(*ca, *cert, *key, *workers)
	if err != nil {
		log.Fatal(err)
	}
	begin := time.Now()
	refused := bindAll(client, *server, lines, *workers)
	fmt.Printf("%d bindings, %d refused, %.3f s\n", len(lines), refused, time.Since(begin).Seconds())
	if refused > 0 {
		os.Exit(1)
	}
}

func readLines(path string) ([][]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var lines [][]string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: want namespace, pod and node in each line, got %q", path, scanner.Text())
		}
		lines = append(lines, fields)
	}
	return lines, scanner.Err()
}

func newClient(ca, cert, key string, workers int) (*http.Client, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1
		MaxIdleConnsPerHost: workers,
		MaxConnsPerHost:     workers,
	}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}, nil
}

func bindAll(client *http.Client, server string, lines [][]string, workers int) int64 {
	var next, refused atomic.Int64
	var group sync.WaitGroup
	for range make([]struct{}, workers) {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				i := next.Add(1) - 1
				if i >= int64(len(lines)) {
					return
				}
				if err := bind(client, server, lines[i]); err != nil {
					if refused.Add(1) <= 5 {
						log.Print(err)
					}
				}
			}
		}()
	}
	group.Wait()
	return refused.Load()
}

func bind(client *http.Client, server string, line []string) error {
	namespace, pod, node := line[0], line[1], line[2]
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s/binding", server, namespace, pod)
	body := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q,"namespace":%q},"target":{"apiVersion":"v1","kind":"Node","name":%q}}`,
		pod, namespace, node)
	response, err := client.Post(url, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("binding %s/%s to %s: %s %.200s", namespace, pod, node, response.Status, answer)
	}
	return nil
}
