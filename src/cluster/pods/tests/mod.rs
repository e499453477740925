mod lens;
mod store;
