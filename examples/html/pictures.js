import { token, url } from './settings.js'

const headers = { authorization: `Bearer ${token}` }
const form = document.querySelector('form')

async function send(path, init) {
  const response = await fetch(`${url}/api/${path}`, { headers, ...init })
  const result = await response.json()
  // `detail` of a problem is a sentence for people.
  if (!response.ok) throw new Error(result.detail)
  return result
}

async function show() {
  const { data } = await send('items?kind=image&order=newest&urls=signed')
  const images = data.map((item) => {
    // The service chooses a size for each width; a link of a private bucket has parameters already.
    const withWidth = (width) => `${item.url}${item.url.includes('?') ? '&' : '?'}w=${width}`
    return Object.assign(new Image(item.width, item.height), {
      sizes: '(min-width: 60rem) 25vw, 100vw',
      srcset: [400, 1600].map((width) => `${withWidth(width)} ${width}w`).join(', '),
      src: withWidth(1600),
      alt: item.alt_text ?? item.filename ?? '',
    })
  })
  document.querySelector('main').replaceChildren(...images)
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const output = document.querySelector('output')
  try {
    await send('media', { method: 'POST', body: new FormData(form) })
    form.reset()
    output.textContent = ''
    await show()
  } catch (error) {
    output.textContent = error.message
  }
})

await show()
