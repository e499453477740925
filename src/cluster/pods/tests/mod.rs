mod decoder;
mod store;
