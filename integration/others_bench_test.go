package integration

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkSquid compares reads of sixteen clients with squid's ssl-bump (Debian's
// squid-openssl), whose certificates are made ahead.
func BenchmarkSquid(b *testing.B) {
	squid := installed(b, "squid", "squid-openssl")
	maker := "/usr/lib/squid/security_file_certgen"
	if _, err := os.Stat(maker); err != nil {
		b.Skipf("not run: squid has no certificate generator; install Debian's squid-openssl: %v", err)
	}
	l := newLab(b, kilobytes)
	dir := b.TempDir()
	ca, caPEM, err := bareCA()
	if err != nil {
		b.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(ca.PrivateKey)
	if err != nil {
		b.Fatal(err)
	}
	roots, err := os.ReadFile(l.settings.UpstreamCA)
	if err != nil {
		b.Fatal(err)
	}
	address := freeAddress(b)
	for name, text := range map[string]string{
		"ca.pem": string(caPEM), "ca.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), "upstream.pem": string(roots),
		"squid.conf": fmt.Sprintf(`http_port %s ssl-bump generate-host-certificates=on dynamic_cert_mem_cache_size=4MB tls-cert=%[2]s/ca.pem tls-key=%[2]s/ca.key
sslcrtd_program %[3]s -s %[2]s/certificates -M 4MB
sslcrtd_children 2
acl first at_step SslBump1
ssl_bump peek first
ssl_bump bump all
http_access allow localhost
http_access deny all
tls_outgoing_options cafile=%[2]s/upstream.pem
cache deny all
access_log none
cache_log %[2]s/squid.log
cache_store_log none
netdb_filename none
pid_filename none
coredump_dir %[2]s
`, address, dir, maker),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if out, err := exec.Command(maker, "-c", "-s", dir+"/certificates", "-M", "4MB").CombinedOutput(); err != nil {
		b.Fatalf("squid's certificates: %v: %s", err, out)
	}
	l.openToAll(dir)
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		b.Fatal(err)
	}
	pid := l.startOther(squid, address, "-N", "-f", dir+"/squid.conf")
	// Its certificates are for names alone.
	l.target = strings.Replace(l.target, "127.0.0.1", "localhost", 1)
	l.readsAgainst(b, "squid", l.wayThrough("http://"+address, string(caPEM), pid))
}

// BenchmarkMitmproxy compares them with mitmproxy (Debian's mitmproxy).
func BenchmarkMitmproxy(b *testing.B) {
	mitmdump := installed(b, "mitmdump", "mitmproxy")
	l := newLab(b, kilobytes)
	dir, address := b.TempDir(), freeAddress(b)
	host, port, _ := net.SplitHostPort(address)
	pid := l.startOther(mitmdump, address, "-q", "--listen-host", host, "-p", port,
		"--set", "confdir="+dir, "--set", "ssl_verify_upstream_trusted_ca="+l.settings.UpstreamCA)
	caPEM, err := os.ReadFile(filepath.Join(dir, "mitmproxy-ca-cert.pem"))
	if err != nil {
		b.Fatal(err)
	}
	l.readsAgainst(b, "mitmproxy", l.wayThrough("http://"+address, string(caPEM), pid))
}

// readsAgainst compares reads through the program with those through another proxy.
func (l *lab) readsAgainst(b *testing.B, name string, other *way) {
	b.Helper()
	theirs := other.of(name+" read", "GET", fixed("/read"), nil)
	l.compare(b, []*way{theirs, l.keep().of("read", "GET", fixed("/read"), theirs)}, 16, roundsOfWays)
}

// installed finds a program, or skips, naming the Debian package.
func installed(b *testing.B, program, from string) string {
	b.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		b.Skipf("not run: %s isn't on this machine; Debian's package is %s", program, from)
	}
	return path
}

// freeAddress is one that nobody listens at now.
func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// openToAll lets a program that gives up root read and write a folder.
func (l *lab) openToAll(dir string) {
	l.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o777)
		}
		return os.Chmod(path, 0o666)
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// startOther starts a proxy that announces nothing, and waits until it listens.
func (l *lab) startOther(program, address string, arguments ...string) (pid int) {
	l.t.Helper()
	cmd := exec.Command(program, arguments...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-gone
		}
	})
	l.poll(program+" listens", func() bool {
		select {
		case <-gone:
			l.t.Fatalf("%s has ended: %s", program, said.String())
		default:
		}
		c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return cmd.Process.Pid
}
