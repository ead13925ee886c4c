package kwok

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

//go:embed stages/*.yaml
var stageFiles embed.FS

// loadStages reads the embedded stages, grouped by what they are about.
func loadStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	entries, err := stageFiles.ReadDir("stages")
	if err != nil {
		return nil, fmt.Errorf("list stages: %w", err)
	}
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, e := range entries {
		data, err := stageFiles.ReadFile("stages/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read stages: %w", err)
		}
		list, err := decodeStages(data)
		if err != nil {
			return nil, fmt.Errorf("stages %s: %w", e.Name(), err)
		}
		for _, s := range list {
			stages[s.Spec.ResourceRef] = append(stages[s.Spec.ResourceRef], s)
		}
	}
	return stages, nil
}

// decodeStages decodes a YAML stream of kwok Stages; an unknown field is an error.
func decodeStages(data []byte) ([]*internalversion.Stage, error) {
	var stages []*internalversion.Stage
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	defer documents.Close()
	buf := make([]byte, len(data))
	for {
		n, err := documents.Read(buf)
		if errors.Is(err, io.EOF) {
			return stages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split documents: %w", err)
		}
		var v1 v1alpha1.Stage
		if err := yaml.UnmarshalStrict(buf[:n], &v1); err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		s, err := internalversion.ConvertToInternalStage(&v1)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", v1.Name, err)
		}
		stages = append(stages, s)
	}
}
