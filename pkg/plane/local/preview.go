package local

import (
	"slices"
	"strings"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/bootstrap"
)

// A Preview is everything that an installation would do, in words.
type Preview struct {
	// Fresh says that nothing is installed yet.
	Fresh        bool               `json:"fresh"`
	DataDir      string             `json:"dataDir"`
	Server       string             `json:"server"`
	Process      string             `json:"process"`
	Certificates []string           `json:"certificates"`
	Files        []string           `json:"files"`
	Components   []ComponentPreview `json:"components"`
	Objects      []string           `json:"objects"`
}

// A ComponentPreview is the command line of one component.
type ComponentPreview struct {
	Name string   `json:"name"`
	Args []string `json:"args"`
}

// Preview says what Apply would do. Keys are named, never shown.
func (i *Installation) Preview() (Preview, error) {
	p := Preview{
		Fresh:   i.fresh,
		DataDir: i.Plane.Layout.Dir,
		Server:  i.Plane.Config.Server(),
		Process: i.previewProcess(),
		Files:   []string{i.Plane.Layout.ConfigFile(), i.Plane.Layout.AdminKubeconfig()},
	}
	for _, c := range i.Certificates {
		p.Certificates = append(p.Certificates, c.String())
	}
	for _, k := range i.Plane.Kubeconfigs {
		p.Files = append(p.Files, k.Path)
	}
	for _, f := range i.Plane.Files {
		p.Files = append(p.Files, f.Path)
	}
	for _, c := range i.Plane.Components {
		p.Components = append(p.Components, ComponentPreview{Name: c.Name, Args: c.Args})
	}
	server := bootstrap.WebhookServer{URL: i.Plane.WebhookServer()}
	sets, err := bootstrap.All(server, nil)
	if err != nil {
		return Preview{}, err
	}
	api := bootstrap.AggregatedAPI(i.Plane.Config.Ports[plane.PortKarmadaAggregatedAPIServer], nil)
	hooks, err := bootstrap.Webhooks(server)
	if err != nil {
		return Preview{}, err
	}
	for _, o := range slices.Concat(sets, api, hooks) {
		name := o.GetName()
		if ns := o.GetNamespace(); ns != "" {
			name = ns + "/" + name
		}
		p.Objects = append(p.Objects, o.GetKind()+" "+name)
	}
	return p, nil
}

func (i *Installation) previewProcess() string {
	command := strings.Join(i.request.Supervisor, " ")
	switch {
	case i.restart:
		return "restarted, with other settings: " + command
	case i.running.Running():
		return "runs already, and is left alone"
	}
	return "started in the background: " + command
}
