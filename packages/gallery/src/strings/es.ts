import type { Texts } from './en.ts'
import { formatCount } from './locale.ts'

const files = (count: number) => (count === 1 ? '1 archivo' : `${formatCount(count)} archivos`)

const viewer: Texts['viewer'] = {
  label: (name: string) => `Archivo: ${name}`,
  position: (position: number, total: number) => `${formatCount(position)} de ${formatCount(total)}`,
  previous: 'Archivo anterior',
  next: 'Archivo siguiente',
  details: 'Detalles',
  copy: 'Copiar enlace',
  download: 'Descargar',
  delete: 'Eliminar',
  partlyShown: 'Esta imagen está dañada y solo se muestra en parte. Sube el original de nuevo.',
  loading: 'Cargando…',
  notLoaded: 'No se pudo cargar el visor. Comprueba tu conexión y recarga la página.',
  deleted: 'Este archivo fue eliminado.',
  failed: 'No se pudo cargar este archivo. Inténtalo más tarde.',
}

const deleted: Texts['deleted'] = {
  done: (count: number) => (count === 1 ? '1 archivo eliminado.' : `${files(count)} eliminados.`),
  failed: (count: number, reason: string) =>
    count === 1
      ? `No se pudo eliminar 1 archivo. ${reason}`
      : `No se pudieron eliminar ${files(count)}. ${reason}`,
  trashed: (count: number) =>
    count === 1 ? '1 archivo movido a la papelera.' : `${files(count)} movidos a la papelera.`,
  undo: 'Deshacer',
  restored: (count: number) => (count === 1 ? '1 archivo restaurado.' : `${files(count)} restaurados.`),
  missing: (count: number) =>
    count === 1 ? '1 archivo ya no está en la papelera.' : `${files(count)} ya no están en la papelera.`,
  refused: (reason: string) => `No se ha conseguido. ${reason}`,
}

const adding: Texts['adding'] = {
  drop: 'Suelta para subir',
  dropNotAllowed: 'Este token no puede subir archivos',
  dropNotAllowedHint: 'Inicia sesión con un token que tenga el permiso media:write.',
  dropHint: (bucket: string) => `Los archivos y carpetas se suben a «${bucket}».`,
  notAllowed:
    'Este token no puede subir archivos. Inicia sesión con un token que tenga el permiso media:write.',
  delayed: 'Las subidas empiezan cuando el servidor vuelva a responder.',
  notLoaded: 'No se pudo cargar el programa de subida. Comprueba tu conexión y recarga la página.',
}

export const es: Texts = {
  product: 'Mediabucket',
  files,
  unnamed: 'Archivo sin nombre',
  byte: '1 byte',
  units: ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'],
  close: 'Cerrar',
  cancel: 'Cancelar',
  dismiss: 'Descartar',
  tryAgain: 'Reintentar',
  notLoaded: 'No se pudo cargar. Comprueba tu conexión y recarga la página.',
  skipToMedia: 'Saltar a los archivos',
  back: 'Volver a los archivos',
  done: 'Listo',
  copied: 'Copiado.',
  notCopied: 'El navegador no lo copió. Selecciona el texto y cópialo.',
  /** What `#trash` and similar addresses show, instead of files. */
  sections: { trash: 'Papelera', tokens: 'Tokens', webhooks: 'Webhooks' },

  signIn: {
    title: 'Inicia sesión en tu bucket',
    about: 'Introduce el token de acceso del bucket.',
    token: 'Token de acceso',
    show: 'Mostrar el token',
    hide: 'Ocultar el token',
    keep: 'Mantener la sesión durante un día',
    keepHint: 'En un equipo compartido, desmarca esta casilla. La sesión terminará al cerrar esta pestaña.',
    submit: 'Iniciar sesión',
    busy: 'Iniciando sesión…',
    noToken:
      '¿No tienes un token? El servidor muestra uno al iniciarse por primera vez. Para crear otro, ejecuta «npx mediabucket token create --bucket default».',
    missing: 'Introduce un token.',
    malformed: 'Esto no es un token. Los tokens empiezan por «mbkt_» o «mbks_» y no contienen espacios.',
    refused: 'Este token no es válido. Está mal escrito, caducado o revocado. Compruébalo o usa otro.',
    cannotRead: (scopes: string) =>
      `Este token no puede ver archivos. Sus permisos: ${scopes}. Usa un token con media:read.`,
    noScopes: 'ninguno',
    ended: 'Se cerró tu sesión porque el token caducó o fue revocado. Inicia sesión con otro token.',
    signedOut: 'Has cerrado la sesión.',
    withIssuer: (name: string) => `Iniciar sesión con ${name}`,
    or: 'o con un token',
    issuerFailed: 'No se pudo iniciar sesión. Inténtalo de nuevo.',
    expired: 'Tu sesión ha caducado. Inicia sesión de nuevo.',
    dayPassed: 'Tu sesión terminó después de 24 horas. Inicia sesión de nuevo.',
    resuming: 'Abriendo tu bucket…',
  },

  header: {
    upload: 'Subir',
    uploadFolder: 'Subir una carpeta',
    signOut: 'Cerrar sesión',
    used: (size: string) => `${size} en uso`,
    usedOf: (size: string, limit: string) => `${size} de ${limit}`,
    itemsOf: (count: number, limit: number) => `${formatCount(count)} de ${formatCount(limit)} archivos`,
    usage: 'Espacio en uso',
  },

  settings: {
    label: 'Ajustes',
    theme: 'Tema',
    themes: { system: 'Como el sistema', light: 'Claro', dark: 'Oscuro' },
    language: 'Idioma',
  },

  signOut: {
    title: '¿Cerrar la sesión ahora?',
    about: (left: number) =>
      left === 1
        ? '1 archivo aún se está subiendo. Al cerrar la sesión se cancela.'
        : `${formatCount(left)} archivos aún se están subiendo. Al cerrar la sesión se cancelan.`,
    stay: 'Seguir con la sesión',
    leave: 'Cerrar sesión',
  },

  listing: {
    private: 'Privado',
    privateHint: 'Los archivos necesitan un token del bucket o un enlace que caduca.',
    noThumbnail: 'Sin vista previa: la imagen está dañada o es demasiado grande',
    loading: 'Cargando los archivos…',
    failed: 'No se pudieron cargar los archivos',
    empty: 'Este bucket está vacío',
    emptyHint: 'Suelta archivos o carpetas en esta página, pega una imagen o elige archivos abajo.',
    ask: 'Pedir archivos',
    emptyReadOnlyHint: 'Para subir archivos, inicia sesión con un token que tenga el permiso media:write.',
    chooseFiles: 'Elegir archivos',
    chooseFolder: 'Elegir una carpeta',
  },

  view: { label: 'Vista', grid: 'Cuadrícula', list: 'Lista' },

  filter: {
    label: 'Buscar y filtrar',
    search: 'Buscar por nombre',
    kind: 'Tipo',
    labels: 'Etiquetas',
    chosenLabels: 'Etiquetas elegidas',
    removeLabel: (label: string) => `Quitar ${label}`,
    anyValue: 'Todas',
    noLabels: 'Ningún archivo tiene etiquetas.',
    kinds: {
      all: 'Todos los tipos',
      image: 'Imágenes',
      video: 'Vídeos',
      audio: 'Audio',
      document: 'Documentos',
      other: 'Otros archivos',
    },
    time: 'Fecha',
    times: {
      all: 'Cualquier fecha',
      day: 'Últimas 24 horas',
      week: 'Últimos 7 días',
      month: 'Últimos 30 días',
      year: 'Último año',
    },
    clear: 'Quitar los filtros',
    matches: ({ count, isExact }: { count: number; isExact: boolean }) =>
      !isExact
        ? count === 1
          ? 'Coincide al menos 1 archivo'
          : `Coinciden al menos ${formatCount(count)} archivos`
        : count === 0
          ? 'Ningún archivo coincide'
          : count === 1
            ? '1 archivo coincide'
            : `${formatCount(count)} archivos coinciden`,
    none: 'Ningún archivo coincide',
    noneHint: 'Cambia la búsqueda o quita los filtros.',
  },

  timeline: {
    day: (day: string) => `Archivos: ${day}`,
    loaded: 'Los archivos están cargados',
    newestFirst: 'Más recientes primero',
    oldestFirst: 'Más antiguos primero',
    switchOrder: 'Invertir el orden',
    orderBy: 'Orden',
    orderKeys: {
      added: 'Por fecha de subida',
      taken: 'Por fecha de la toma',
      name: 'Por nombre',
    },
    names: {
      ascending: 'De la A a la Z',
      descending: 'De la Z a la A',
    },
    noName: 'Sin nombre',
  },

  selection: {
    label: 'Archivos seleccionados',
    select: (name: string) => `Seleccionar ${name}`,
    count: (count: number) => (count === 1 ? '1 seleccionado' : `${formatCount(count)} seleccionados`),
  },

  deleted,

  link: {
    forEveryone: 'Para todos, hasta que el enlace caduque:',
    forTokens: 'Solo con un token del bucket:',
    withoutExpiry: 'Enlace sin caducidad',
    names: 'Nombres en los enlaces',
    needsToken: 'El bucket es privado: el enlace solo funciona con un token del bucket.',
    lifetime: (hours: number) =>
      hours < 24 ? '1 hora' : hours === 24 ? '1 día' : `${formatCount(hours / 24)} días`,
    validFor: (time: string) => `Válido durante ${time}`,
    copied: (count: number) => (count === 1 ? 'Enlace copiado.' : `${formatCount(count)} enlaces copiados.`),
    failed: 'El navegador impidió copiar. Copia el enlace desde los detalles del archivo.',
  },

  viewer,

  adding,

  connection: {
    lost: 'No se puede conectar con el servidor.',
    offline: 'Estás sin conexión.',
    retrying: 'Reconectando…',
    retryNow: 'Probar ahora',
    back: 'Conexión restablecida.',
  },

  errors: {
    unreachable: 'No se puede conectar con el servidor. Comprueba que funciona y que tienes conexión.',
    unexpected:
      'Ocurrió un error inesperado. Inténtalo de nuevo; si se repite, mira el registro del servidor.',
  },
}
