//! The form of every error response.

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::report::STATUS_VERSION;

/// An answer that says why there is none.
#[derive(Debug)]
pub(super) struct ErrorResponse(pub(super) StatusCode, pub(super) String);

impl ErrorResponse {
    /// Creates an answer with a status and its reason.
    pub(super) fn new(status: StatusCode, why: &str) -> Self {
        Self(status, why.to_owned())
    }
}

/// Returns an answer to what is done later.
pub(super) fn accepted_response(message: &str) -> Json<serde_json::Value> {
    Json(json!({ "apiVersion": STATUS_VERSION, "kind": "Accepted", "message": message }))
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "apiVersion": STATUS_VERSION, "kind": "Error", "message": self.1 })))
            .into_response()
    }
}

/// Returns a question that is understood, or which of its parameters is not.
pub(super) fn require_query<T>(question: Result<Query<T>, QueryRejection>) -> Result<T, ErrorResponse> {
    let Query(question) =
        question.map_err(|rejection| ErrorResponse(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    Ok(question)
}
