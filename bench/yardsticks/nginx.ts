import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type Place, startSubject } from '../subject.ts'

/** nginx that serves the files below `directory/files`; with `gzip`, it compresses each response. */
export async function startNginx(
  directory: string,
  { workers = 1, gzip = false, place = 'apart' }: { workers?: number; gzip?: boolean; place?: Place } = {},
) {
  const port = await freePort()
  mkdirSync(join(directory, 'files'), { recursive: true })
  writeFileSync(
    join(directory, 'nginx.conf'),
    `daemon off; user root; worker_processes ${workers}; pid ${directory}/nginx.pid; error_log stderr notice;
events { worker_connections 1024; }
http {
  access_log off; gzip ${gzip ? 'on; gzip_min_length 1; gzip_types application/json' : 'off'}; sendfile on; tcp_nopush on; keepalive_requests 1000000000; open_file_cache max=100;
  client_body_temp_path ${directory}/body; proxy_temp_path ${directory}/proxy; fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi; scgi_temp_path ${directory}/scgi;
  types { application/json json; } default_type application/octet-stream;
  server { listen 127.0.0.1:${port}; root ${directory}/files; }
}
`,
  )
  const command = ['nginx', '-e', 'stderr', '-p', directory, '-c', join(directory, 'nginx.conf')]
  return startSubject(
    'nginx',
    command,
    {},
    (printed) => (printed.includes('start worker process ') ? `http://127.0.0.1:${port}` : null),
    place,
  )
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
