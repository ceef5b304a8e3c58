import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { readItems } from '../harness/wire.ts'
import { lines, runClient } from './client-run.ts'
import { useKeysScenes } from './keys-scene.ts'

const keys = ['a', 'a/b', 'a/c/d', 'a/c/e', 'b//x', 'é/1']

for (const engine of ['sqlite', 'postgres'] as const)
  describe(engine, () => {
    const newScene = useKeysScenes(engine)

    /** A bucket with these keys, which were stored in another order, and an item without a key. */
    async function scene() {
      const at = await newScene()
      for (const key of keys.toReversed()) await at.put(key, key)
      await at.client.upload(Buffer.from('none'), { filename: 'a/b' })
      const call = (query: string, headers: Readonly<Record<string, string>> = {}) =>
        fetch(`${at.service.url}/api/items?${query}`, {
          headers: { authorization: `Bearer ${at.service.token}`, ...headers },
        })
      return { ...at, call, ls: (...args: string[]) => runClient(at.service, 'ls', '--keys', ...args) }
    }

    test('K21 items are selected by the start of their keys, in the order of their bytes, with any other filter', async () => {
      await using at = await scene()
      const select = async (query: string) => (await readItems(await at.call(query))).data
      const keysOf = async (query: string) => (await select(query)).map(({ key }) => key)
      expect(await keysOf('key=')).toEqual(keys)
      expect(await keysOf('key=a/c&order=newest')).toEqual(['a/c/e', 'a/c/d'])
      expect(await keysOf('key=absent')).toEqual([])
      expect(await keysOf('key=a&kind=image')).toEqual([])
      expect(await keysOf('key=a&name=b')).toEqual(['a/b'])
      expect(await keysOf('keys')).toEqual([...keys.toReversed(), null])
      expect(await keysOf('keys=on&path=a/b')).toEqual(['a/b', null])
      expect(await (await at.call('key=a&page=2&per_page=3')).json()).toMatchObject({
        data: [{ key: 'a/c/e' }],
      })
      for (const item of [...(await select('keys=off')), ...(await select('path=a'))])
        expect(item).not.toHaveProperty('key')

      const found: unknown[] = []
      for (let query: string | null = 'key=&limit=1'; query !== null; ) {
        const { data, next_cursor }: Awaited<ReturnType<typeof readItems>> = await readItems(
          await at.call(query),
        )
        found.push(...data.map(({ key }) => key))
        query = next_cursor === null ? null : `key=&limit=1&after=${next_cursor}`
      }
      expect(found).toEqual(keys)
      const text = await (await at.call('key=a/', { accept: 'application/x-ndjson' })).text()
      expect(lines(text).map((line) => JSON.parse(line).key)).toEqual(['a/b', 'a/c/d', 'a/c/e'])
    })

    test('K7, K21 the ETag of a list with keys changes with a key, and is of no list without', async () => {
      await using at = await scene()
      const tagOf = async (query: string) => (await at.call(query)).headers.get('etag') ?? ''
      const tag = await tagOf('keys=on')
      expect((await at.call('keys=on', { 'if-none-match': tag })).status).toBe(304)
      expect((await at.call('', { 'if-none-match': tag })).status).toBe(200)
      await at.put('a', 'new')
      expect((await at.call('keys=on', { 'if-none-match': tag })).status).toBe(200)
    })

    test.each([
      `key=${'a'.repeat(1_025)}`,
      'key=a&key=b',
      'key=a%00',
      'key=a&order=name',
      'keys=yes',
      'key=a&keys=yes',
    ])('K3, K21 %s gets a 400 problem', async (query) => {
      await using at = await newScene()
      const response = await fetch(`${at.service.url}/api/items?${query}`, {
        headers: { authorization: `Bearer ${at.service.token}` },
      })
      await expectProblem(response, 400, 'parameter-malformed')
    })

    test.each([[['a', 'a/', 'a/b', 'a/c/d', 'A/e']], [['a/c/d', 'a/c', 'a/b', 'a']]])(
      'get --all downloads the items of %s, although a file and a folder of the disk cannot have one name',
      async (keys) => {
        await using at = await newScene()
        for (const key of keys) await at.put(key, `bytes of ${key}`)
        const get = async () => {
          const { code, stdout, stderr } = await runClient(at.service, 'get', '--all', at.at('copy'))
          expect(code, stderr).toBe(0)
          return lines(stdout).map((line) => line.split('\t')[1] ?? '')
        }
        const files = await get()
        const contents = await Promise.all(files.map((file) => readFile(file, 'utf8')))
        expect(contents.toSorted()).toEqual(keys.map((key) => `bytes of ${key}`).toSorted())
        expect((await get()).toSorted()).toEqual(files.toSorted())
      },
    )

    test('ls --keys prints keys by their beginning, up to the next slash or all', async () => {
      await using at = await scene()
      expect(await at.ls()).toMatchObject({ code: 0, stdout: 'a\na/\nb/\né/\n' })
      expect(lines((await at.ls('-R')).stdout)).toEqual(keys)
      expect((await at.ls('a/')).stdout).toBe('a/b\na/c/\n')
      expect((await at.ls('-R', 'a/c')).stdout).toBe('a/c/d\na/c/e\n')
      expect(await at.ls('absent/')).toMatchObject({
        ...{ code: 4, stdout: '' },
        stderr: expect.stringContaining('no keys that begin with "absent/"'),
      })
      expect(
        (await at.ls('--json', 'a/')).stdout.split('\n').flatMap((line) => line && JSON.parse(line)),
      ).toEqual([
        expect.objectContaining({ key: 'a/b', size: 3, path: 'a/b' }),
        { key: 'a/c/', folder: true },
        '',
      ])
      expect(lines((await at.ls('-l', 'a/')).stdout).map((line) => line.split('\t').slice(3))).toEqual([
        ['application/octet-stream', 'a/b'],
        ['', 'a/c/'],
      ])
      expect(await at.ls('--page', '2')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('ls takes --keys with a prefix, -R, -l, --all and --json only'),
      })
    })
  })
