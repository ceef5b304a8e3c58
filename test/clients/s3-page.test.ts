import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { blocksOf, shown } from '../docs/blocks.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters } from '../harness/pictures.ts'
import { needTools } from '../harness/tools.ts'
import { isComplete } from './install.ts'
import { type Door, doors } from './s3/door.ts'

const page = 'docs/s3.md'
const documented = 'http://127.0.0.1:9000'

let door: Door
beforeAll(async () => {
  const [, open] = doors[0] ?? expect.fail('no door')
  door = await open()
  const client = new S3Client({
    endpoint: door.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: door.accessKey, secretAccessKey: door.secretKey },
  })
  await client.send(new CreateBucketCommand({ Bucket: 'photos' }))
  client.destroy()
})
afterAll(() => door[Symbol.asyncDispose]())

const interpreters: Readonly<Record<string, readonly string[]>> = {
  sh: ['sh', '-eu'],
  python: ['/usr/bin/python3'],
  js: [process.execPath],
}

/** Runs the code in a new directory that has a picture. Returns what it prints. */
async function run(language: string, extension: string, code: string): Promise<string> {
  await using directory = await temporaryDirectory()
  await mkdir(join(directory.path, 'pictures'))
  await writeFile(join(directory.path, 'pictures/harbour.png'), await quarters(64, 48).png().toBuffer())
  await symlink(join(root, 'node_modules'), join(directory.path, 'node_modules'))
  const file = join(directory.path, `lines.${extension}`)
  await writeFile(file, code.replaceAll(documented, door.endpoint))
  const [command = language, ...options] = interpreters[language] ?? []
  const { stdout } = await promisify(execFile)(command, [...options, file], {
    cwd: directory.path,
    env: {
      PATH: `/usr/bin:${process.env['PATH']}`,
      HOME: directory.path,
      LANG: 'C.UTF-8',
      AWS_ACCESS_KEY_ID: door.accessKey,
      AWS_SECRET_ACCESS_KEY: door.secretKey,
      AWS_DEFAULT_REGION: 'us-east-1',
    },
  })
  return stdout
}

const quick = ['js', 'python']
const blocks = blocksOf(page).filter(({ language, reason }) => !shown.includes(language) && reason === null)

test.each(blocks.filter(({ language }) => isComplete || quick.includes(language)))(
  'the lines of docs/s3.md: line $line, $language',
  async ({ language, code }) => {
    if (language === 'python') needTools('/usr/lib/python3/dist-packages/boto3')
    for (const tool of ['rclone', 'restic', '/usr/bin/aws'])
      if (code.includes(`${tool.replace('/usr/bin/', '')} `)) needTools(tool)
    const extension = { sh: 'sh', python: 'py', js: 'mjs' }[language] ?? ''
    const printed = await run(language, extension, code)
    // A signed URL on its last line works.
    const url = /^http\S+$/m.exec(printed)?.[0]
    if (url !== undefined) expect((await fetch(url)).headers.get('content-type')).toBe('image/png')
    if (language === 'js') expect(printed).toBe('Notes of the harbour.\n')
  },
)

test.runIf(isComplete)('the configuration of Rails in docs/s3.md stores a file', async () => {
  needTools('ruby', '/usr/share/rubygems-integration/all/gems/activestorage-6.1.7.10')
  const text = readFileSync(join(root, page), 'utf8')
  const yaml = /```yaml\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
  const program = `
    require 'logger'
    require 'erb'
    require 'active_support'
    require 'active_support/core_ext'
    require 'active_storage'
    require 'active_storage/service'
    ActiveStorage.logger = Logger.new(nil)
    configuration = YAML.load(ERB.new(<<~'YAML').result)
    ${yaml.split('\n').join('\n    ')}
    YAML
    storage = ActiveStorage::Service.configure(:photos, configuration.deep_symbolize_keys)
    storage.upload('rails', StringIO.new('attached'))
    print storage.download('rails')`
  expect(await run('ruby', 'rb', program)).toBe('attached')
})
