package member

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

// dialThrough opens a connection to an address, through the proxy that choose
// returns for it.
func dialThrough(ctx context.Context, choose func(*http.Request) (*url.URL, error), header http.Header, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	via, err := choose(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil {
		return nil, fmt.Errorf("find the proxy for %s: %w", address, err)
	}
	direct := &net.Dialer{KeepAlive: 30 * time.Second}
	if via == nil {
		return direct.DialContext(ctx, network, address)
	}
	switch via.Scheme {
	case "http", "https":
		conn, err := connect(ctx, direct, via, header, address)
		if err != nil {
			return nil, fmt.Errorf("connect to %s through proxy %s: %w", address, via.Redacted(), err)
		}
		return conn, nil
	case "socks5", "socks5h":
		dialer, err := proxy.FromURL(via, direct)
		if err != nil {
			return nil, fmt.Errorf("use proxy %s: %w", via.Redacted(), err)
		}
		contextual, ok := dialer.(proxy.ContextDialer)
		if !ok {
			return nil, fmt.Errorf("use proxy %s: it cannot be stopped", via.Redacted())
		}
		conn, err := contextual.DialContext(ctx, network, address)
		if err != nil {
			return nil, fmt.Errorf("connect to %s through proxy %s: %w", address, via.Redacted(), err)
		}
		return conn, nil
	}
	return nil, fmt.Errorf("proxy %s: scheme %q is not supported", via.Redacted(), via.Scheme)
}

// connect asks an HTTP proxy for a tunnel.
func connect(ctx context.Context, dialer *net.Dialer, via *url.URL, header http.Header, address string) (_ net.Conn, err error) {
	conn, err := dialer.DialContext(ctx, "tcp", withPort(via))
	if err != nil {
		return nil, err
	}
	// Whoever gives up must not wait for the proxy.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			_ = conn.Close()
		}
	}()

	if via.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: header.Clone()}
	if request.Header == nil {
		request.Header = http.Header{}
	}
	if password, ok := via.User.Password(); ok && request.Header.Get("Proxy-Authorization") == "" {
		basic := &http.Request{Header: http.Header{}}
		basic.SetBasicAuth(via.User.Username(), password)
		request.Header.Set("Proxy-Authorization", basic.Header.Get("Authorization"))
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	answer := bufio.NewReader(conn)
	response, err := http.ReadResponse(answer, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New("the proxy answers " + response.Status)
	}
	if answer.Buffered() > 0 {
		return nil, errors.New("the proxy sends data before it was asked to")
	}
	return conn, nil
}

func withPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
