package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Path is where the webhook is served (spec: behaviour/08 8.1).
const Path = "/convert"

// longestReview is what one request may have, in bytes: hundreds of the largest objects that an API server stores.
const longestReview = 512 << 20

// ServeHTTP answers ConversionReviews of apiextensions.k8s.io/v1. A review is converted as a whole or not at all, in the
// order of its objects.
func (c *Converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestReview)).Decode(&review); err != nil {
		status := http.StatusBadRequest
		var long *http.MaxBytesError
		if errors.As(err, &long) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, fmt.Sprintf("read the ConversionReview: %v", err), status)
		return
	}
	if review.Request == nil || review.APIVersion != apiextensionsv1.SchemeGroupVersion.String() || review.Kind != "ConversionReview" {
		http.Error(w, fmt.Sprintf("this is no ConversionReview of %s with a request", apiextensionsv1.SchemeGroupVersion), http.StatusBadRequest)
		return
	}
	data, err := json.Marshal(apiextensionsv1.ConversionReview{TypeMeta: review.TypeMeta, Response: c.answer(review.Request)})
	if err != nil {
		http.Error(w, fmt.Sprintf("write the answer: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the API server has gone, and asks again
}

// answer converts the objects of a request.
func (c *Converter) answer(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{
		UID:              request.UID,
		ConvertedObjects: make([]runtime.RawExtension, 0, len(request.Objects)),
		Result:           metav1.Status{Status: metav1.StatusSuccess},
	}
	for _, object := range request.Objects {
		converted, err := c.Convert(object.Raw, request.DesiredAPIVersion)
		if err != nil {
			response.ConvertedObjects = nil
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}
