import { defineProvider } from '@nuxt/image/runtime'

export default defineProvider({
  getImage(src, { modifiers: { width = 1600 } }) {
    return { url: `${src}${src.includes('?') ? '&' : '?'}w=${width}` }
  },
})
