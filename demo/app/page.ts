import { type Client, createClient } from '../../packages/client/src/index.ts'

// The page of the example. It sends pictures to the media service and receives them from it; the app's server only signs tokens.

const element = <T extends HTMLElement>(selector: string, type: new () => T): T => {
  const found = document.querySelector(selector)
  if (!(found instanceof type)) throw new Error(`the page has no ${selector}`)
  return found
}
const form = element('#sign-in', HTMLFormElement)
const pictures = element('#pictures', HTMLElement)
const files = element('#files', HTMLInputElement)
const list = element('#list', HTMLUListElement)
const message = element('#message', HTMLOutputElement)

/** Seconds for which a shared link is valid. `?share=2` in the address of the page shortens it. */
const shareFor = Number(new URL(location.href).searchParams.get('share') ?? 3600)

/** The address of the service, and a fresh token of the user: it is valid for five minutes. */
async function mediaToken(): Promise<{ url: string; token: string }> {
  const response = await fetch('/media-token', { method: 'POST' })
  if (!response.ok) throw new Error('Sign in first.')
  return await response.json()
}

const connect = async (): Promise<Client> => createClient(await mediaToken())

/** Shows what other browsers of the user add and delete. The client calls `token` before each request, so it outlives a token. */
async function followChanges(): Promise<void> {
  const token = async () => (await mediaToken()).token
  const client = createClient({ url: (await mediaToken()).url, token })
  // What happens after this cursor is followed, and the list has all that happened before.
  const after = await client.latestCursor()
  await showPictures()
  const changes = client.changes({ after })
  while (!(await changes.next()).done) await showPictures()
}

async function showPictures(): Promise<void> {
  const client = await connect()
  const items = []
  for await (const item of client.items({ kind: 'image' })) items.push(item)
  // One request signs the thumbnails of all pictures, for some minutes.
  const ids = items.map(({ id }) => id)
  const { urls } =
    ids.length === 0 ? { urls: new Map() } : await client.createLinks(ids, { variant: 'thumb' })
  list.replaceChildren(
    ...items.map(({ id, filename }) => {
      const picture = Object.assign(new Image(), { src: urls.get(id) ?? '', alt: filename ?? '' })
      const share = Object.assign(document.createElement('button'), { textContent: 'Share' })
      share.addEventListener('click', () => void report(() => sharePicture(id)))
      const entry = document.createElement('li')
      entry.append(picture, share)
      return entry
    }),
  )
}

async function sharePicture(id: string): Promise<void> {
  const { url, expires_at } = await (await connect()).createLink(id, { expiresIn: shareFor })
  const link = Object.assign(document.createElement('a'), { href: url, textContent: url })
  message.replaceChildren('Until ', expires_at, ': ', link)
}

/** Shows the error of an action to the user. */
async function report(action: () => Promise<void>): Promise<void> {
  message.replaceChildren()
  await action().catch((error: unknown) => {
    message.textContent = error instanceof Error ? error.message : String(error)
  })
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  void report(async () => {
    const response = await fetch('/sign-in', {
      method: 'POST',
      body: new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, String(value)])),
    })
    if (!response.ok) throw new Error('The user or the password is wrong.')
    form.hidden = true
    pictures.hidden = false
    void report(followChanges)
  })
})

files.addEventListener('change', () => {
  void report(async () => {
    const client = await connect()
    for (const file of files.files ?? []) await client.upload(file)
    files.value = ''
    await showPictures()
  })
})
