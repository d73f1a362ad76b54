// As a generated project would have it, with the one host by which it is shown.
export default {
  server: { host: "127.0.0.1", port: 5173, strictPort: true, allowedHosts: ["preview.test"] },
};
