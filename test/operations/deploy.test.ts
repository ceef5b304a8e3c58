import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap'
import { Secret } from 'kubernetes-models/v1/Secret'
import { Service } from 'kubernetes-models/v1/Service'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '../../packages/server/src/service/config.ts'
import { read } from '../architecture/sources.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { openProxy } from '../harness/proxy.ts'
import { startServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'

const run = promisify(execFile)

const Environment = Type.Record(Type.String(), Type.String())

/** Fails on an unknown name or a value that the service refuses. */
function expectSettings(environment: Readonly<Record<string, string>>): void {
  expect(readConfig(environment).warnings).toEqual([])
}

const models = { ConfigMap, Deployment, PodDisruptionBudget, Secret, Service }

test('kubernetes.yaml is valid by the schemas of Kubernetes', () => {
  const documents = parseAllDocuments(read('docs/deploy/kubernetes.yaml')).map((document) => document.toJS())
  const kinds = documents.map(({ kind }) => kind)
  expect(kinds.toSorted()).toEqual(Object.keys(models))
  for (const document of documents) {
    const model = Object.entries(models).find(([kind]) => kind === document.kind)?.[1]
    if (model) new model(document).validate()
  }
})

test('kubernetes.yaml sets settings of the service, and waits longer than the service takes to stop', () => {
  const documents = parseAllDocuments(read('docs/deploy/kubernetes.yaml')).map((document) => document.toJS())
  const member = (kind: string) => documents.find((document) => document.kind === kind)
  const environment = { ...member('ConfigMap').data, ...member('Secret').stringData }
  expectSettings(Value.Parse(Environment, environment))
  const { terminationGracePeriodSeconds, containers } = member('Deployment').spec.template.spec
  const wait = containers[0].lifecycle.preStop.sleep.seconds
  const { shutdownTimeout } = readConfig(environment).config
  expect(terminationGracePeriodSeconds * 1000).toBeGreaterThan(wait * 1000 + shutdownTimeout + 5_000)
})

const secrets = {
  POSTGRES_PASSWORD: 'secret',
  GARAGE_RPC_SECRET: 'secret',
  AWS_ACCESS_KEY_ID: 'key',
  AWS_SECRET_ACCESS_KEY: 'secret',
  MEDIABUCKET_BASE_URL: 'http://localhost:8080',
}

test('compose.yaml is valid, and sets settings of the service', async () => {
  needTools('docker-compose')
  const { stdout } = await run('docker-compose', ['-f', resolve('docs/deploy/compose.yaml'), 'config'], {
    env: { ...process.env, ...secrets },
  })
  expectSettings(Value.Parse(Environment, parse(stdout).services.mediabucket.environment))
})

test('compose.yaml names each secret that is not set', async () => {
  needTools('docker-compose')
  for (const name of Object.keys(secrets)) {
    const env = { ...process.env, ...secrets, [name]: '' }
    const failed = run('docker-compose', ['-f', resolve('docs/deploy/compose.yaml'), 'config'], { env })
    await expect(failed).rejects.toThrow(name)
  }
})

test('nginx.conf is valid', async () => {
  needTools('nginx')
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'nginx.conf')
  // nginx looks up the names of servers.
  const servers = read('docs/deploy/nginx.conf').replace('server mediabucket:8080', 'server 127.0.0.1:8080')
  await writeFile(path, `pid ${directory.path}/pid; events {} http { ${servers} }`)
  const { stderr } = await run('nginx', ['-t', '-e', 'stderr', '-p', directory.path, '-c', path])
  expect(stderr).toContain('test is successful')
  expect(stderr).not.toContain('[warn]')
})

test('nginx.conf: a 503 of a server reaches the client, and the server keeps its requests', async () => {
  await using proxy = await openProxy('nginx before several servers')
  // More free space than there is: the server is not ready for uploads.
  await using server = await startServer({
    MEDIABUCKET_BASE_URL: proxy.url,
    MEDIABUCKET_MIN_FREE: '1000TB',
  })
  await proxy.start([server.url, server.url])
  const headers = { authorization: `Bearer ${server.token}` }
  for (let time = 0; time < 3; time += 1) {
    expect((await fetch(`${proxy.url}/readyz?writes`)).status).toBe(503)
    expect((await fetch(`${proxy.url}/api/media`, { headers })).status).toBe(200)
  }
})
