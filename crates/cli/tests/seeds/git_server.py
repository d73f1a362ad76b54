# Serves the repositories of a directory over HTTP, with git's own program for that. Its arguments are
# the directory and the port.
import os, subprocess, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT, PORT = sys.argv[1], int(sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        path, _, query = self.path.partition("?")
        length = self.headers.get("content-length") or ""
        body = self.rfile.read(int(length or 0))
        environment = dict(
            os.environ,
            GIT_PROJECT_ROOT=ROOT,
            GIT_HTTP_EXPORT_ALL="1",
            GIT_PROTOCOL=self.headers.get("git-protocol") or "",
            PATH_INFO=path,
            QUERY_STRING=query,
            REQUEST_METHOD=self.command,
            CONTENT_TYPE=self.headers.get("content-type") or "",
            CONTENT_LENGTH=length,
            HTTP_CONTENT_ENCODING=self.headers.get("content-encoding") or "",
        )
        said = subprocess.run(["git", "http-backend"], input=body, env=environment, stdout=-1).stdout
        head, _, rest = said.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = [value for name, value in fields if name == "Status"]
        self.send_response(int(status[0].split()[0]) if status else 200)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    do_GET = do_POST = serve


ThreadingHTTPServer(("0.0.0.0", PORT), Handler).serve_forever()
