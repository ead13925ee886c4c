package certs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Info is what people want to know about a certificate in a directory.
type Info struct {
	Name         string    `json:"name"` // as in Spec.Name
	File         string    `json:"file"`
	CA           bool      `json:"ca"`
	CommonName   string    `json:"commonName,omitempty"`
	Organization []string  `json:"organization,omitempty"`
	DNSNames     []string  `json:"dnsNames,omitempty"`
	IPs          []string  `json:"ips,omitempty"`
	Issuer       string    `json:"issuer,omitempty"` // its common name
	NotBefore    time.Time `json:"notBefore,omitzero"`
	NotAfter     time.Time `json:"notAfter,omitzero"`
	Fingerprint  string    `json:"fingerprint,omitempty"` // see Fingerprint
	Problem      string    `json:"problem,omitempty"`     // why nothing above is known
}

// DaysLeft counts whole days from now until the certificate expires. It is
// negative from the moment it has.
func (i Info) DaysLeft(now time.Time) int {
	return int(math.Floor(i.NotAfter.Sub(now).Hours() / 24))
}

// List describes all certificates in the directory and the folders below it,
// sorted by name. One that cannot be read is listed with its Problem. A
// directory that does not exist has none.
func (d Dir) List() ([]Info, error) {
	var all []Info
	err := filepath.WalkDir(d.Path, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.IsDir() || filepath.Ext(path) != ".crt" {
			return nil
		}
		rel, err := filepath.Rel(d.Path, path)
		if err != nil {
			return err
		}
		all = append(all, d.Inspect(strings.TrimSuffix(filepath.ToSlash(rel), ".crt")))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list certificates in %s: %w", d.Path, err)
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Inspect describes the certificate called name.
func (d Dir) Inspect(name string) Info {
	info := Info{Name: name, File: d.CertFile(name)}
	found, err := read(info.File)
	switch {
	case err != nil:
		info.Problem = err.Error()
		return info
	case !found.exists:
		info.Problem = "it is missing"
		return info
	}
	certs, err := ParseCertificates(found.data)
	if err != nil {
		info.Problem = "it is damaged: " + err.Error()
		return info
	}
	c := certs[0]
	info.CA = c.IsCA
	info.CommonName = c.Subject.CommonName
	info.Organization = c.Subject.Organization
	info.DNSNames = c.DNSNames
	for _, ip := range c.IPAddresses {
		info.IPs = append(info.IPs, ip.String())
	}
	info.Issuer = c.Issuer.CommonName
	info.NotBefore, info.NotAfter = c.NotBefore, c.NotAfter
	info.Fingerprint = Fingerprint(c)
	return info
}
